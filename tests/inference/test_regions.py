"""Regions: parts of a network in one call, which nobody can tell from the network itself."""

import copy
import gc
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch.nn import functional

import syno
from marks import slow_but
from syno import UserError, models
from syno.inference.compiled_region import Fast


class Branches(nn.Module):
    """Values that are used twice, by a layer and outside, reshapes, and two results."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.left = nn.Conv2d(8, 8, 3, padding=1)
        self.right = nn.Conv2d(8, 8, 1)
        self.pool = nn.MaxPool2d(2)
        self.dense = nn.Linear(8 * 16, 10)
        self.rows = nn.Linear(16, 4)

    def forward(self, x):
        x = functional.relu(self.first(x))
        y = functional.relu(self.left(x) + x)
        z = self.right(y) * torch.sigmoid(y.mean())
        maps = self.pool(z + y)
        return self.dense(maps.flatten(1)), self.rows(maps.flatten(2))


def regions(compiled):
    return list(compiled._fast.regions.values())


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Branches().eval()


@pytest.fixture(scope="module")
def compiled(net):
    return syno.compile(net, torch.randn(1, 3, 8, 8))


def same(found, expected):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_a_residual_network_is_one_region():
    net = models.build("resnet-small", classes=10, channels=3, size=16).eval()
    compiled = syno.compile(net, torch.randn(1, 3, 16, 16))
    (region,) = regions(compiled)
    assert len(region.layers) == 10
    called = [n for n in compiled._fast._graph.graph.nodes if n.op != "placeholder"]
    assert [n.op for n in called] == ["call_module", "call_function", "output"]
    with torch.no_grad():
        for batch in (1, 5, 2):
            x = torch.randn(batch, 3, 16, 16)
            torch.testing.assert_close(compiled(x), net(x), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("threads", slow_but([1, 2], 2))
def test_regions_and_layers_compute_the_same(compiled, net, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.inference_mode():
            for batch in (1, 3, 1, 19):
                x = torch.randn(batch, 3, 8, 8)
                same(compiled(x), compiled.network(x))
                same(compiled(x), net(x))
                assert all(map(torch.equal, compiled(x), compiled(x)))
    finally:
        torch.set_num_threads(before)


def test_what_has_no_code_lies_between_regions(net):
    class Middle(nn.Module):
        """A sort, which no program has code for, and a mean of all samples."""

        def __init__(self):
            super().__init__()
            self.first = nn.Conv2d(3, 8, 3, padding=1)
            self.second = nn.Conv2d(8, 8, 3, padding=1)
            self.third = nn.Linear(8, 4)

        def forward(self, x):
            x = torch.relu(self.first(x))
            y = self.second(x.sort(3).values) * 2 + x
            y = (y - y.mean(0)).transpose(1, 3)
            return self.third(y).sigmoid(), x.shape[0] * x.mean()

    net = Middle().eval()
    compiled = syno.compile(net, torch.randn(2, 3, 8, 8))
    assert [len(region.layers) for region in regions(compiled)] == [1, 1, 1]
    with torch.no_grad():
        for batch in (1, 4):
            x = torch.randn(batch, 3, 8, 8)
            same(compiled(x), net(x))


def test_inputs_that_all_samples_share():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 5)
            self.table = nn.Embedding(9, 5)

        def forward(self, x, bias, ids):
            return {"y": torch.tanh(self.layer(x)) + bias, "z": [self.table(ids) + self.layer(x)]}

    net = Two().eval()
    bias, ids = torch.randn(3, 5), torch.tensor([1, 8, 0], dtype=torch.int32)
    compiled = syno.compile(net, (torch.randn(2, 3, 6), bias, ids))
    assert len(regions(compiled)) == 1
    with torch.no_grad():
        for batch in (1, 2, 5):
            x = torch.randn(batch, 3, 6)
            found, expected = compiled(x, bias, ids), net(x, bias, ids)
            same([found["y"], *found["z"]], [expected["y"], *expected["z"]])
        with pytest.raises(RuntimeError, match="the token id 9 is not below 9"):
            compiled(torch.randn(1, 3, 6), bias, ids + 1)


class Beside(nn.Module):
    """A layer, and beside it a value that `made` computes of the samples and its result."""

    def __init__(self, made):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.token = nn.Parameter(torch.randn(1, 6))
        self.made = made

    def forward(self, x):
        y = torch.relu(self.layer(x))
        return y, self.made(self, x, y)


@pytest.mark.parametrize(
    "made",
    [
        lambda net, x, y: y + torch.arange(x.shape[0])[:, None],
        lambda net, x, y: y.view(x.shape[0] * 2, 3) + torch.ones(x.shape[0] * 2, 3).cumsum(0),
        lambda net, x, y: net.layer(net.token.expand(x.shape[0], -1)) + y.sort(1).values,
        lambda net, x, y: y[:, :0],
        lambda net, x, y: torch.cat([y[:, :0].sort(1).values, y], 1),
    ],
    ids=["numbers of samples", "a count of rows", "a token", "nothing", "nothing from outside"],
)
def test_what_depends_on_the_batch_or_is_empty_lies_outside(made):
    net = Beside(made).eval()
    compiled = syno.compile(net, torch.randn(2, 6))
    with torch.no_grad():
        for batch in (1, 4):
            x = torch.randn(batch, 6)
            same(compiled(x), net(x))
    assert len(regions(compiled)) >= 1


def test_samples_that_are_added_leave_layers_to_themselves():
    class Longer(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x):
            return torch.relu(self.layer(functional.pad(x, (0, 0, 0, 0, 0, 2)))).sum((1, 2))

    net = Longer().eval()
    compiled = syno.compile(net, torch.randn(2, 4, 6))
    with torch.no_grad():
        x = torch.randn(3, 4, 6)
        torch.testing.assert_close(compiled(x), net(x), atol=1e-5, rtol=1e-4)


def test_a_network_that_changes_its_input_has_no_regions():
    class Changes(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x):
            y = self.layer(x)
            x.add_(1)
            return y + x

    net = Changes().eval()
    compiled = syno.compile(net, torch.randn(2, 6))
    assert not regions(compiled)
    x = torch.randn(3, 6)
    other = x.clone()
    with torch.no_grad():
        same([compiled(x), x], [net(other), other])


@torch.no_grad()
def test_inputs_in_any_layout(compiled, net):
    x = torch.randn(2, 3, 8, 8)
    for given in (
        x.to(memory_format=torch.channels_last),
        x.transpose(2, 3),
        x.expand(2, 3, 8, 8)[:1].expand(4, 3, 8, 8),
        torch.randn(2, 3, 8, 16)[..., ::2],
    ):
        same(compiled(given), net(given))


@torch.no_grad()
def test_a_batch_of_none(compiled, net):
    assert [list(y.shape) for y in compiled(torch.zeros(0, 3, 8, 8))] == [[0, 10], [0, 8, 4]]


@torch.no_grad()
def test_hooks_see_the_layers(compiled):
    seen = []
    layer = next(iter(compiled.network.children()))
    x = torch.randn(1, 3, 8, 8)
    handle = layer.register_forward_hook(lambda module, given, y: seen.append(y.shape))
    found = compiled(x)
    handle.remove()
    same(compiled(x), found)
    assert seen == [(1, 8, 8, 8)]


@torch.no_grad()
def test_weights_that_are_exchanged_are_used(net):
    compiled = syno.compile(net, torch.randn(1, 3, 8, 8))
    x = torch.randn(1, 3, 8, 8)
    before = compiled(x)
    layer = next(iter(compiled.network.children()))
    layer.channel += 1.0  # in place
    changed = compiled(x)
    assert not torch.allclose(changed[0], before[0])
    layer.channel = layer.channel - 1.0  # another tensor
    same(compiled(x), before)


def test_gradients_are_refused(compiled):
    x = torch.randn(1, 3, 8, 8)
    assert compiled(x)[0].requires_grad is False
    with pytest.raises(RuntimeError, match="requires a gradient"):
        compiled(x.requires_grad_())


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda y: tuple(each * 1.001 for each in y), "differs by 1.0e-03 of the largest output, "),
        (lambda y: y[:1], "differs by inf of the largest output, and by .* one by one"),
    ],
)
def test_a_wrong_region_is_found(net, monkeypatch, wrong, says):
    right = Fast.__call__
    monkeypatch.setattr(Fast, "__call__", lambda self, *inputs: wrong(right(self, *inputs)))
    with pytest.raises(UserError, match=says):
        syno.compile(net, torch.randn(1, 3, 8, 8))


@torch.no_grad()
def test_wrong_inputs_are_refused(compiled):
    with pytest.raises(syno.UserError, match=r"use x\.float\(\)"):
        compiled(torch.zeros(1, 3, 8, 8, dtype=torch.float64))
    with pytest.raises(syno.UserError, match="another shape"):
        compiled(torch.zeros(1, 3, 8, 9))
    with pytest.raises(syno.UserError, match="another shape"):
        compiled(torch.zeros(3, 8, 8))


@torch.no_grad()
def test_copies_have_regions_of_their_own(compiled, net):
    x = torch.randn(2, 3, 8, 8)
    expected = compiled(x)
    for twin in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        layer = next(iter(twin.network.children()))
        assert layer is regions(twin)[0].layers[0]
        assert twin._fast.takes((x,))
        same(twin(x), expected)
        layer.packed.zero_()[:5] = next(iter(compiled.network.children())).packed[:5]
        assert not torch.allclose(twin(x)[0], expected[0])
    same(compiled(x), expected)


def _seconds(compiled, x):
    """The seconds in layers, which are no more than those of the call."""
    began = time.perf_counter()
    seconds = compiled.layer_seconds(x)
    assert 0.0 < seconds < time.perf_counter() - began
    return seconds


@torch.inference_mode()
def test_seconds_in_layers_are_a_part_of_a_call(compiled):
    assert _seconds(compiled, torch.randn(4, 3, 8, 8)) < 1.0


def test_seconds_in_layers_belong_to_the_call(compiled):
    x = torch.randn(4, 3, 8, 8)
    stop = threading.Event()

    @torch.inference_mode()
    def measure(_):
        return [_seconds(compiled, x) for _ in range(200)]

    @torch.inference_mode()
    def compute():
        while not stop.is_set():
            compiled(x)

    with ThreadPoolExecutor(5) as pool:
        others = pool.submit(compute)
        try:
            found = list(pool.map(measure, range(4)))
        finally:
            stop.set()
        others.result()
    assert all(len(each) == 200 for each in found)


class Rows(nn.Module):
    """A layer whose first dimension has several rows of each sample."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 6)

    def forward(self, x):
        """Of all rows of all samples."""
        return self.layer(x.flatten(0, 1))


def test_samples_may_have_several_rows():
    net = Rows().eval()
    compiled = syno.compile(net, torch.randn(2, 3, 8))
    assert len(regions(compiled)) == 1
    with torch.inference_mode():
        x = torch.randn(5, 3, 8)
        torch.testing.assert_close(compiled(x), net(x), atol=1e-5, rtol=1e-4)
        _seconds(compiled, x)


def test_seconds_that_cannot_be_measured_are_an_error(compiled):
    hook = compiled.network.register_forward_hook(lambda *_: None)
    try:
        with pytest.raises(syno.UserError, match="cannot be measured in this call"):
            compiled.layer_seconds(torch.randn(4, 3, 8, 8))
    finally:
        hook.remove()


def refused(numbers, kernels=(), packed=(), constants=(), match="a program of kernels"):
    with pytest.raises(RuntimeError, match=match):
        torch.ops.syno._add_program(numbers, list(kernels), list(packed), list(constants))


def test_numbers_that_are_no_program_are_refused(compiled):
    refused([])
    refused([0, 0, 1, 5, 0, 0, 5])  # no functions
    refused([1, 1, 1, 5, 0, 0])  # no output
    refused([1, 1, 2, 5, 0, 0, 5])  # an input too few
    layer = regions(compiled)[0].layers[0]
    kernel = torch.ops.syno._kernel_at(layer.key, layer.epilogue)
    sizes = [1, 1, 1, 192, 0, 0, 512]
    refused(sizes, [kernel])
    refused(sizes, [0], [layer.packed])
    refused(sizes, [kernel], [layer.packed[:-1].clone()], match="packed of the wrong size")
    refused(sizes, [kernel], [torch.zeros_like(layer.packed)], match="weights for another kernel")
    refused(sizes, [kernel], [layer.packed], [torch.zeros(3).double()], match="wrong dtype")


@torch.no_grad()
def test_arguments_that_a_program_does_not_take_are_refused(compiled):
    compiled(torch.randn(2, 3, 8, 8))
    region = regions(compiled)[0]
    x = torch.randn(2, 3, 8, 8)
    out = region(x)
    number = region._number

    def refused(given, to, batch):
        with pytest.raises(RuntimeError, match="a program of kernels"):
            torch.ops.syno._run_program(given, to, number, batch, False)

    refused([x], out, 3)
    refused([x], out, 0)
    refused([x, x], out, 2)
    refused([x], out[:-1], 2)
    refused([x.double()], out, 2)
    refused([x[..., :7]], out, 2)
    refused([x], [out[0][:1], *out[1:]], 2)
    lying = torch.empty(*out[0].shape[:-1], 2 * out[0].shape[-1])[..., ::2]
    refused([x], [lying, *out[1:]], 2)
    with pytest.raises(RuntimeError, match="no such program"):
        torch.ops.syno._run_program([x], out, -1, 2, False)


def test_a_program_that_is_gone_is_dropped_when_another_is_made(net, compiled):
    gone = syno.compile(net, torch.randn(1, 3, 8, 8))
    with torch.no_grad():
        gone(torch.randn(1, 3, 8, 8))
    number = regions(gone)[0]._number
    del gone
    gc.collect()
    twin = copy.deepcopy(compiled)
    with torch.no_grad():
        twin(torch.randn(1, 3, 8, 8))
    with pytest.raises(RuntimeError, match="no such program"):
        torch.ops.syno._run_program([], [torch.empty(0)], number, 1, False)


def test_a_program_that_ends_while_torch_traces_leaves_no_trace(net):
    """The garbage collector runs at any moment."""
    used = [syno.compile(net, torch.randn(1, 3, 8, 8))]
    with torch.no_grad():
        used[0](torch.randn(1, 3, 8, 8))

    class Ends(nn.Module):
        def forward(self, x):
            used.clear()
            gc.collect()
            return x * 2

    batch = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(Ends(), (torch.zeros(3, 2),), dynamic_shapes=batch, strict=False)
    called = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert called == [torch.ops.aten.mul.Tensor]
