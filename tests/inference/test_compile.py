"""`syno.compile`: the same values as the network, in every form that torch gives it."""

import copy
import io
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import syno
from syno import UserError
from syno._util.trial_calls import difference
from syno.codegen.native import find_compiler
from syno.inference.compiled_layer import CompiledLayer
from syno.operators import zoo

pytestmark = pytest.mark.usefixtures("one_torch_thread")


class Weighted(nn.Module):
    """A convolution with a weight that is computed."""

    def forward(self, x, weight):
        return F.conv2d(x, weight, stride=2)


class Net(nn.Module):
    """Covered layers, a convolution that is not covered, and plain functions."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.weighted = Weighted()
        self.head = nn.Linear(8, 5)
        self.norm.running_mean.normal_(generator=torch.Generator().manual_seed(1))

    def forward(self, x):
        """Scores."""
        x = F.relu(self.norm(self.first(x)))
        x = F.relu(self.second(x) + x)
        weight = x[:1, :, :3, :3].expand(8, -1, -1, -1)
        return self.head(self.weighted(x, weight).mean((2, 3)))


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture(scope="module")
def compiled(net):
    return syno.compile(net, torch.randn(1, 3, 8, 8))


def close(a, b):
    torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_it_computes_the_same_for_any_batch(net, compiled):
    for batch in (1, 2, 5):
        x = torch.randn(batch, 3, 8, 8)
        close(compiled(x), net(x))
        close(compiled(x.to(memory_format=torch.channels_last)), net(x))


def test_the_report_says_what_is_a_kernel(compiled):
    rows = {row.name: row for row in compiled.rows}
    assert rows["first"].epilogue == "bias+relu"
    assert rows["second"].epilogue == "bias+residual+relu"
    assert rows["head"].kernel
    assert not rows["weighted"].kernel
    assert "a weight that the network computes" in rows["weighted"].reason
    text = compiled.report().markdown()
    assert "| weighted | convolution | PyTorch |" in text
    assert "| mean | average | kernel |" in text


@torch.no_grad()
def test_copies_and_exported_forms_compute_the_same(net, compiled):
    x = torch.randn(2, 3, 8, 8)
    expected = net(x)
    close(copy.deepcopy(compiled)(x), expected)
    close(torch.export.export(compiled, (x,)).module()(x), expected)
    held = io.BytesIO()
    torch.save(compiled, held)
    held.seek(0)
    close(torch.load(held, weights_only=False)(x), expected)


@torch.no_grad()
def test_torch_compile_takes_it_in_one_graph(net, compiled):
    x = torch.randn(2, 3, 8, 8)
    close(torch.compile(compiled, fullgraph=True, backend="aot_eager")(x), net(x))


def test_it_has_nothing_to_train(compiled):
    assert not any(p.requires_grad for p in compiled.parameters())
    assert not compiled(torch.zeros(1, 3, 8, 8)).requires_grad
    with pytest.raises(UserError, match="a compiled network cannot be trained"):
        compiled.train()
    assert compiled.eval() is compiled


def test_another_shape_is_an_error(compiled):
    with pytest.raises(UserError, match=r"expected: \['n', 3, 8, 8\] {6}got: \[1, 3, 9, 8\]"):
        compiled(torch.zeros(1, 3, 9, 8))


@torch.no_grad()
def test_operators_of_slots_are_kernels():
    net = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.ReLU())
    net = syno.substitute(net, example_input=torch.zeros(1, 4, 6, 6)).eval()
    for placeholder in syno.slots(net).values():
        placeholder.binding["k"] = 3
    syno.replace(net, zoo.load("conv2d"))
    found = syno.compile(net, torch.randn(1, 4, 6, 6), convolutions=False)
    assert [(row.kind, row.epilogue) for row in found.rows] == [("operator", "bias+relu")]
    x = torch.randn(3, 4, 6, 6)
    close(found(x), net(x))


def test_a_wrong_kernel_is_found_and_named(net, monkeypatch):
    init = CompiledLayer.__init__

    def wrong(self, kernel, layer):
        init(self, kernel, layer)
        if self.name == "second":
            self.channel = self.channel + 0.1

    monkeypatch.setattr(CompiledLayer, "__init__", wrong)
    with pytest.raises(UserError, match="the kernel of the layer 'second' differs"):
        syno.compile(net, torch.randn(1, 3, 8, 8))
    assert syno.compile(net, torch.randn(1, 3, 8, 8), verify=False).rows


class Draws(nn.Module):
    """A layer whose outputs are changed by random numbers in evaluation mode, too."""

    def __init__(self, change):
        super().__init__()
        self.layer, self.change = nn.Conv2d(3, 4, 3), change

    def forward(self, x):
        return self.change(self.layer(x))


@pytest.mark.parametrize(
    "change", [lambda x: F.dropout(x, 0.5, True), lambda x: x + torch.rand_like(x)]
)
@torch.no_grad()
def test_random_numbers_are_drawn_or_named(change):
    net, x = Draws(change).eval(), torch.randn(2, 3, 8, 8)
    with pytest.raises(UserError, match=r"draws random numbers in .* cannot be compared"):
        syno.compile(net, x)
    compiled = syno.compile(net, x, verify=False)
    assert not torch.equal(compiled(x), compiled(x))


@torch.no_grad()
def test_a_dimension_may_have_any_small_size_beside_the_batch():
    """Sizes are compared while a network is traced, and that fixes the batch if they are alike."""

    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(5, 1, batch_first=True)

        def forward(self, x):
            x = x.chunk(2, 2)[0].select(1, 0)
            return self.attention(x, x, x)[0]

    for size in (2, 3, 5):
        net = Attends().eval()
        compiled = syno.compile(net, torch.randn(2, 4, 2 * size, 5))
        for batch in (1, 3, 4):
            x = torch.randn(batch, 4, 2 * size, 5)
            close(compiled(x), net(x))


@torch.no_grad()
def test_layers_stay_pytorch_without_a_compiler(monkeypatch):
    net = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.ReLU()).eval()
    x = torch.randn(2, 3, 7, 11)  # no other test compiles this
    monkeypatch.setenv("CXX", "no-such-compiler")
    find_compiler.cache_clear()
    try:
        with pytest.warns(UserWarning, match="1 of 1 layers stay PyTorch: there is no C"):
            found = syno.compile(net, x)
    finally:
        find_compiler.cache_clear()
    assert [(row.kernel, row.reason[:11]) for row in found.rows] == [(False, "there is no")]
    close(found(x), net(x))


class OnValues(nn.Module):
    """Depends on the values of its input."""

    def forward(self, x):
        """One of two."""
        return x + 1 if x.sum() > 0 else x


def eval_of(net, dtype=torch.float32):
    return net.to(dtype).eval()


BAD = {
    "no module": (lambda: (torch.relu, torch.zeros(1)), "expected a torch.nn.Module"),
    "no tensor": (lambda: (Net().eval(), [1]), "'example_input' is a tensor"),
    "training": (lambda: (Net(), torch.zeros(1, 3, 8, 8)), "is in training mode"),
    "double": (
        lambda: (eval_of(Net(), torch.float64), torch.zeros(1, 3, 8, 8)),
        r"'first.weight' has the type torch.float64",
    ),
    "half input": (
        lambda: (Net().eval(), torch.zeros(1, 3, 8, 8, dtype=torch.float16)),
        r"'example_input\[0\]' has the type torch.float16",
    ),
    "device": (
        lambda: (Net().eval(), torch.zeros(1, 3, 8, 8, device="meta")),
        r"'example_input\[0\]' is on the device meta",
    ),
    "empty": (lambda: (Net().eval(), torch.zeros(0, 3, 8, 8)), "at least one sample"),
    "channels": (lambda: (Net().eval(), torch.zeros(1, 4, 8, 8)), "fails on the example input"),
    "values": (
        lambda: (OnValues().eval(), torch.ones(2, 3)),
        "torch.export cannot trace the network OnValues",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_an_error_that_says_what_to_do(name):
    make, message = BAD[name]
    with pytest.raises(UserError, match=message):
        syno.compile(*make())


def test_missing_is_checked(net):
    with pytest.raises(UserError, match="unknown value of 'missing': 'never'"):
        syno.compile(net, torch.zeros(1, 3, 8, 8), missing="never")


@torch.no_grad()
def test_a_network_for_one_batch_size_is_compiled_for_it():
    class Rows(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x).reshape(2, -1)

    net = Rows().eval()
    found = syno.compile(net, torch.randn(2, 4))
    close(found(torch.ones(2, 4)), net(torch.ones(2, 4)))
    with pytest.raises(UserError, match=r"expected: \[2, 4\]"):
        found(torch.ones(4, 4))


def test_errors_are_relative_to_the_largest_value():
    a = torch.tensor([1.0, -4.0])
    assert difference(a, a) == 0
    assert difference(torch.tensor([1.0, -3.0]), a) == pytest.approx(0.25)
    assert difference(torch.tensor([1.0, float("nan")]), a) == float("inf")
    assert difference(torch.zeros(3), a) == float("inf")


SCRIPT = """
import torch
from torch import nn

import syno
from syno import zoo
from syno.codegen.native.kernels import compiled_kernels

sizes = zoo.binding("conv2d")
x = torch.randn(1, sizes["C_in"], sizes["H"], sizes["W"])
net = nn.Sequential(zoo.load("conv2d").kernel_pack(sizes))
with compiled_kernels(net):
    net(x).sum().backward()
syno.compile(net.eval(), x)(x)
"""


@pytest.mark.slow
def test_a_process_that_compiles_ends_silently():
    # torch.export keeps classes and functions beyond the end of the interpreter, and with them
    # what module globals hold; the extension reports its objects that are left.
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


class Squeezed(nn.Module):
    """What follows a squeeze() of everything."""

    def __init__(self, after):
        super().__init__()
        self.conv, self.other = (nn.Conv2d(4, 4, 3, padding=1) for _ in range(2))
        self.linear = nn.Linear(5, 7)
        self.after = after

    def forward(self, x):
        """The function of the squeezed map."""
        return self.after(self, self.conv(x).squeeze())


SQUEEZED = {
    "nothing": (lambda net, y: y, True),
    "functions of each element": (lambda net, y: y.relu() * 2 + 1, True),
    "a convolution": (lambda net, y: net.other(y), False),
    "a linear layer": (lambda net, y: net.linear(y), False),
    "a residual": (lambda net, y: net.other(y + 1) + y, False),
    "a reshape": (lambda net, y: net.other(y.reshape(-1, 4, 6, 5)), False),
    "a pooling": (lambda net, y: nn.functional.max_pool2d(y, 2), False),
}


@pytest.mark.parametrize(("after", "takes_one"), SQUEEZED.values(), ids=SQUEEZED)
@torch.no_grad()
def test_a_squeeze_of_the_batch_is_right_or_refused(after, takes_one):
    torch.manual_seed(0)
    net = Squeezed(after).eval()
    compiled = syno.compile(net, torch.randn(2, 4, 6, 5))
    for batch in (1, 2, 5):
        x = torch.randn(batch, 4, 6, 5)
        if batch == 1 and not takes_one:
            with pytest.raises(syno.UserError, match=r"squeeze\(\) also removes the dimension"):
                compiled(x)
        else:
            torch.testing.assert_close(compiled(x), net(x), atol=1e-5, rtol=1e-4)
    x = torch.randn(1, 4, 6, 5)
    torch.testing.assert_close(syno.compile(net, x)(x), net(x), atol=1e-5, rtol=1e-4)
