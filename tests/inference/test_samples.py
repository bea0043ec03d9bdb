"""Samples of a batch: what is shown not to mix them, and what is refused."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import syno
from syno import UserError
from syno.codegen.export import export_network
from syno.inference.samples.place import SamplePlace
from syno.inference.samples.proof import places_of_results
from syno.inference.samples.single import for_one
from syno.inference.trace import trace

pytestmark = pytest.mark.usefixtures("one_torch_thread")


class Function(nn.Module):
    """A function of a map [n, 4, 6, 5] as a network."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def windows(x):
    """Attention in windows of 3x5, which are more samples on the way."""
    n = x.shape[0]
    y = x.unflatten(2, (2, 3)).permute(0, 2, 3, 4, 1).reshape(-1, 15, 4)
    y = F.scaled_dot_product_attention(y, y, y) + torch.ones(15, 4)
    return y.reshape(n, 2, 3, 5, 4).permute(0, 4, 1, 2, 3).reshape(n, 4, 6, 5)


def sequence_first(x):
    """Rows in the order of a sequence, whose samples are in the middle."""
    n = x.shape[0]
    rows = x.flatten(2).permute(2, 0, 1)
    y = torch.tanh(rows.reshape(30 * n, 4)).reshape(30, n, 4)
    return y.permute(1, 2, 0)


torch.manual_seed(0)
recurrent = nn.LSTM(5, 3, batch_first=True, bidirectional=True).eval()
recurrent.requires_grad_(False)


APART = {
    "each element": lambda x: torch.relu(x) * 2 + x,
    "maps": lambda x: F.max_pool2d(F.pad(x, (1, 1)), 2),
    "token": lambda x: torch.cat([torch.ones(1, 1, 5).expand(x.shape[0], -1, -1), x[:, 0]], 1),
    "same for all": lambda x: x + torch.zeros(x.shape[0], 1, 1, 5),
    "windows": windows,
    "sequence first": sequence_first,
    "products": lambda x: x @ x.transpose(2, 3),
    "softmax": lambda x: x.flatten(1).softmax(-1),
    "parts": lambda x: torch.stack(x.chunk(2, 1), 2).select(2, 0),
    "chosen": lambda x: x[:, [2, 0]],
    "moved": lambda x: x.roll(1, 2),
    "named products": lambda x: torch.einsum("nchw,ndhw->nhcd", x, x.exp()),
    "samples several times": lambda x: torch.cat(
        [x.repeat_interleave(3, 0).unflatten(0, (-1, 3)).flatten(1, 2), x.repeat(1, 2, 1, 1)], 1
    ),
    "copies of all": lambda x: x.repeat(2, 1, 1, 1).unflatten(0, (2, -1)).transpose(0, 1),
    "columns": lambda x: F.fold(F.unfold(x, 3, 1, 1, 2), (6, 5), 3, 1, 1, 2),
    "recurrent": lambda x: recurrent(x.flatten(1, 2))[0],
}
MEET = {
    "mean": lambda x: x - x.mean(0, keepdim=True),
    "sum": lambda x: x.sum(0),
    "all": lambda x: x / x.sum(),
    "softmax": lambda x: x.softmax(0),
    "first": lambda x: x - x[:1],
    "reversed": lambda x: x.flip(0),
    "twice": lambda x: torch.cat([x, x]),
    "size": lambda x: x / x.shape[0],
    "number": lambda x: x + torch.arange(x.shape[0]).reshape(-1, 1, 1, 1),
    "constant of the size": lambda x: x * torch.ones(x.shape[0]).sum(),
    "pairs": lambda x: x.flatten(1) @ x.flatten(1).t(),
    "summed product": lambda x: x.flatten(1).t() @ x.flatten(1),
    "attention": lambda x: F.scaled_dot_product_attention(*[x.permute(1, 2, 0, 3)] * 3),
    "normed": lambda x: F.normalize(x.flatten(1), dim=0),
    "unknown": lambda x: torch.linalg.svdvals(x),
    "bilinear": lambda x: torch.einsum("nchw,mchw->nm", x, x),
}


def graph_of(function):
    inputs = (torch.randn(2, 4, 6, 5),)
    traced = trace(Function(function).eval(), inputs, batch=True, loops=True)
    assert traced.batch
    return traced.graph


@pytest.mark.parametrize("name", APART)
def test_samples_that_do_not_meet(name):
    graph, x = graph_of(APART[name]), torch.randn(3, 4, 6, 5)
    assert places_of_results(graph) == [SamplePlace(0)]
    whole = APART[name](x)
    for_one(graph)
    for number in range(3):
        one = x[number : number + 1]
        torch.testing.assert_close(APART[name](one)[0], whole[number])
        torch.testing.assert_close(graph(one)[0], whole[number])


@pytest.mark.parametrize("name", MEET)
def test_samples_that_may_meet_are_refused(name):
    with pytest.raises(UserError, match="samples of a batch may depend") as said:
        places_of_results(graph_of(MEET[name]))
    assert "what to do: use syno.compile" in str(said.value)


def test_a_result_whose_first_dimension_is_no_batch_is_refused(tmp_path):
    for function, what in (
        (lambda x: x.transpose(0, 1), "first dimension of the network's result is not the batch"),
        (lambda x: torch.ones(2, 3) * 2, "first dimension of the network's result is not the ba"),
        (lambda x: x[:, 0, 0, 0].unsqueeze(1).squeeze(), "shape .* of a single sample is not tha"),
    ):
        with pytest.raises(UserError, match=what):
            export_network(
                Function(function), tmp_path / "n", torch.ones(1, 4, 6, 5), format="cpp-network"
            )


class Branch(nn.Module):
    """Another function of a batch of one, which torch.export does not see."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 3)

    def forward(self, x):
        y = self.linear(x)
        return y * 2 if x.shape[0] == 1 else y


def test_a_branch_on_a_batch_of_one_fixes_the_batch(tmp_path):
    net = Branch().eval()
    for batch in (1, 2):
        x = torch.randn(batch, 5)
        made = syno.compile(net, x)
        torch.testing.assert_close(made(x), net(x))
        with pytest.raises(UserError, match=rf"expected: \[{batch}, 5\]"):
            made(torch.randn(3, 5))
    for name, what in (("cpp-network", "takes one size"), ("torch-export", "in another way")):
        with pytest.raises(UserError, match=what):
            export_network(net, tmp_path / "n", torch.randn(2, 5), format=name)


class Counter(nn.Module):
    """A network with a state."""

    def __init__(self, kept):
        super().__init__()
        self.linear = nn.Linear(5, 3)
        self.register_buffer("calls", torch.zeros(()))
        self.kept = kept

    def forward(self, x):
        if self.kept == "in place":
            self.calls += 1
        else:
            self.calls = self.calls + 1
        return self.linear(x) * self.calls


@pytest.mark.parametrize("kept", ["in place", "assigned"])
@pytest.mark.parametrize("verify", [True, False])
def test_state_is_named_and_left_as_it_is(tmp_path, kept, verify):
    net = Counter(kept).eval()
    with pytest.raises(UserError, match=r"calls|keeps no state"):
        syno.compile(net, torch.randn(2, 5), verify=verify)
    for name in ("cpp-network", "torch-export", "torch-network"):
        with pytest.raises(UserError, match="changes its buffer 'calls'"):
            export_network(net, tmp_path / "n", torch.randn(2, 5), format=name)
    assert net.calls == 0


class Scale(nn.Module):
    """A network that changes its input."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 5)

    def forward(self, x):
        x.mul_(2)
        return self.linear(x) + x


def test_an_input_that_is_changed(tmp_path):
    net, example = Scale().eval(), torch.randn(2, 5)
    before = example.clone()
    made = syno.compile(net, example)
    assert torch.equal(example, before)
    one, two = torch.ones(3, 5), torch.ones(3, 5)
    torch.testing.assert_close(made(one), net(two))
    assert torch.equal(one, two)
    with pytest.raises(UserError, match="changes its input 'x' in place"):
        export_network(net, tmp_path / "n", example, format="cpp-network")


class Aliases(nn.Module):
    """Results that have memory of their own, and results that do not."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(5, 3)
        self.register_buffer("table", torch.ones(4))

    def forward(self, x):
        y = self.linear(x)
        return x, x.clone(), y, y.clone(), y * 2, y * 2, self.table * 2, self.table.clone()


@torch.no_grad()
def test_results_share_memory_where_those_of_the_network_do():
    net, x = Aliases().eval(), torch.randn(2, 5)
    made = syno.compile(net, x)
    found, right = made(x), net(x)
    for a, b in zip(found, right, strict=True):
        torch.testing.assert_close(a, b)
    places = [
        [one.data_ptr() == other.data_ptr() for other in (x, *of)]
        for of in (found, right)
        for one in of
    ]
    assert places[: len(right)] == places[len(right) :]
    found[6].zero_(), found[7].zero_()
    assert made(x)[6].eq(2).all() and made(x)[7].eq(1).all()


class Two(nn.Module):
    """A network of two inputs."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 3), nn.Linear(2, 3)

    def forward(self, x, t):
        return torch.relu(self.first(x)) + self.second(t)


@torch.no_grad()
def test_an_input_of_one_sample_stands_for_all():
    net = Two().eval()
    x, t = torch.randn(4, 5), torch.randn(4, 2)
    for example in ((x[:1], t[:1]), (x[:2], t[:2])):
        made = syno.compile(net, example)
        for given in ((x, t), (x, t[:1]), (x[:1], t), (x[:1], t[:1])):
            torch.testing.assert_close(made(*given), net(*given))
        with pytest.raises(UserError, match="different numbers of samples"):
            made(x, t[:3])
    made = syno.compile(net, (x, t[:1]))  # which is an input without a batch
    torch.testing.assert_close(made(x[:3], t[:1]), net(x[:3], t[:1]))
    with pytest.raises(UserError, match=r"expected: \[1, 2\]"):
        made(x, t)
