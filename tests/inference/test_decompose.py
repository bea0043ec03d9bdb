"""The graph of a program of torch.export, taken apart node by node."""

import pytest
import torch
import torch.nn.functional as F
from tests.inference.grammar import inputs, network
from torch import nn

from syno._util.torch_code import exportable, shapes_by_parameter
from syno.inference.decompose import decomposed
from syno.inference.decompositions import SIMPLER

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def program(net, *given):
    """Of a network of any batch size."""
    net = exportable(net.eval())
    sizes = shapes_by_parameter(net, [{0: torch.export.Dim("batch")} for _ in given])
    with torch.no_grad():
        return torch.export.export(net, given, dynamic_shapes=sizes, strict=False)


def taken_apart(program):
    return decomposed(program, program.module(check_guards=False), SIMPLER)


@pytest.fixture
def whole(monkeypatch):
    """The programs that torch took apart as a whole."""
    found = []
    torchs = torch.export.ExportedProgram.run_decompositions

    def run_decompositions(self, table):
        found.append(self)
        return torchs(self, table)

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", run_decompositions)
    return found


def changing(graph):
    """The operators in place of a graph."""
    return [
        str(node.target)
        for node in graph.graph.nodes
        if getattr(node.target, "_schema", None) and node.target._schema.is_mutable
    ]


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_are_taken_apart_as_torch_does_it(seed):
    net = network(seed)
    given = [x.new_empty(61, *x.shape[1:]) for x in inputs(net, 2)]
    made = program(net, *given)
    graph, changed = taken_apart(made)
    expected = made.run_decompositions(SIMPLER).module(check_guards=False)
    assert changed == ""
    for batch in (2, 5):
        with torch.no_grad():
            found, right = (each(*inputs(net, batch)) for each in (graph, expected))
        torch.testing.assert_close(found, right, rtol=0, atol=0, equal_nan=True)


class Function(nn.Module):
    """A function of an image and a convolution."""

    def __init__(self, function):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.function = function
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        """The function."""
        return self.function(self, x)


def seen_before(net, x):
    y = net.conv(x)
    total = y.sum(-1)
    z = y.relu_()
    return y, z, total


def twice(net, x):
    y = net.conv(x)
    y += x
    F.hardswish(y, inplace=True)
    return y * y.sigmoid_()


def in_a_view(net, x):
    y = net.conv(x)
    y[:, :2].relu_()
    return y


def under_a_view(net, x):
    y = net.conv(x)
    view = y[:, 1:]
    y.mul_(2.0)
    return view + y[:, :1]


def beside_a_dropout(net, x):
    y = net.conv(x)
    F.dropout(y, training=net.training).add_(1.0)
    return y


def of_two_types(net, x):
    y = net.conv(x)
    return y.add_(x.double())


def of_input(net, x):
    return x.relu_() + net.conv(x)


def of_buffer(net, x):
    net.calls.add_(1.0)
    return net.conv(x) * net.calls


def of_one_part(net, x):
    first, second = net.conv(x).chunk(2, 1)
    first.relu_()
    return first + second


def of_statistics(net, x):
    y = F.batch_norm(net.conv(x), torch.ones(4), torch.ones(4)).relu_()
    return F.batch_norm(y, None, None, training=True)


def to_bool(net, x):
    return net.conv(x).gt_(0.0)


def constant(net, x):
    return (net.conv(x) + torch.tensor([1.0, 2.0])[1]).clamp_(0, 1)


def reshaped(net, x):
    y = net.conv(x)
    return (
        y.flatten(1)
        .contiguous()
        .reshape(y.shape[0], -1, 2)
        .transpose(1, 2)
        .chunk(2, 1)[1]
        .to(x.dtype)
    )


@pytest.mark.parametrize(
    ("function", "as_whole"),
    [
        (seen_before, False),
        (twice, False),
        (in_a_view, True),
        (under_a_view, True),
        (beside_a_dropout, False),
        (of_two_types, True),
        (of_input, True),
        (of_one_part, True),
        (of_statistics, False),
        (to_bool, True),
        (constant, False),
        (reshaped, False),
    ],
)
def test_operators_in_place_change_what_is_read_later(function, as_whole, whole):
    torch.manual_seed(0)
    net = Function(function).eval()
    graph, changed = taken_apart(program(net, torch.empty(61, 4, 6, 5)))
    assert bool(whole) == as_whole
    assert changed == ""
    assert changing(graph) == (["aten.copy_.default"] if function is of_input else [])
    for batch in (2, 5):
        x = torch.randn(batch, 4, 6, 5)
        with torch.no_grad():
            found, right = graph(x.clone()), net(x.clone())
        torch.testing.assert_close(found, right, rtol=0, atol=0)


def test_a_buffer_that_changes_is_named():
    graph, changed = taken_apart(program(Function(of_buffer), torch.empty(61, 4, 6, 5)))
    assert changed == "calls"
    assert isinstance(graph, torch.fx.GraphModule)


def test_dead_random_numbers_are_left_out():
    def drawn(net, x):
        torch.rand_like(x)
        return net.conv(x)

    graph, _ = taken_apart(program(Function(drawn), torch.empty(61, 4, 6, 5)))
    assert not any("rand" in str(node.target) for node in graph.graph.nodes)
