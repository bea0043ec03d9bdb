"""Passes over the graph of a network: each leaves what it computes as it was."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from syno.codegen.torch_op.epilogue import ACTIVATIONS
from syno.inference.passes.layers import layers_of
from syno.inference.prepare import prepare
from syno.network.placeholder import Placeholder
from syno.operators import zoo

pytestmark = pytest.mark.usefixtures("one_torch_thread")


class Function(nn.Module):
    """A function of a module's convolution, or of several, and the input."""

    def __init__(self, function, layers=1):
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(layers))
        self.norm = normalisation(4)
        self.function = function

    def forward(self, x):
        """The function."""
        return self.function(self, x, *self.layers)


def normalisation(channels):
    norm = nn.BatchNorm2d(channels)
    draw = torch.Generator().manual_seed(3)
    norm.running_mean.copy_(torch.randn(channels, generator=draw))
    norm.running_var.copy_(torch.rand(channels, generator=draw) + 0.5)
    with torch.no_grad():
        norm.weight.copy_(torch.rand(channels, generator=draw) + 0.5)
        norm.bias.copy_(torch.randn(channels, generator=draw))
    return norm


def epilogues(net, shape=(4, 6, 6)):
    """The epilogues of a network's layers, whose results are those of the network."""
    x = torch.randn(2, *shape, generator=torch.Generator().manual_seed(4))
    net.eval()
    with torch.no_grad():
        prepared = prepare(net, (x,), batch=True)
        torch.testing.assert_close(prepared.graph(x), net(x), atol=1e-5, rtol=1e-5)
    layers = layers_of(prepared.graph).values()
    return [layer.parts.text for layer in layers], prepared


def plain(prepared):
    return {str(node.target) for node in prepared.graph.graph.nodes if node.op == "call_function"}


MODULES = {
    "relu": nn.ReLU(),
    "relu6": nn.ReLU6(),
    "silu": nn.SiLU(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU(approximate="tanh"),
    "hardswish": nn.Hardswish(),
    "sigmoid": nn.Sigmoid(),
    "tanh": nn.Tanh(),
    "hardsigmoid": nn.Hardsigmoid(),
}


def test_every_activation_of_epilogues_has_a_module_here():
    assert MODULES.keys() == ACTIVATIONS.keys()


@pytest.mark.parametrize("name", MODULES)
def test_an_activation_becomes_part_of_the_layer(name):
    found, prepared = epilogues(Function(lambda self, x, conv: MODULES[name](conv(x))))
    assert found == [f"bias+{name}"]
    assert not plain(prepared)


def test_a_tensor_all_of_which_is_written_goes():
    def written(self, x, conv):
        y = torch.empty_like(x)
        y[:, :] = conv(x)
        return F.relu(y)

    found, prepared = epilogues(Function(written))
    assert found == ["bias+relu"]
    assert not plain(prepared)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.ReLU6, nn.SiLU, nn.Hardswish])
def test_an_activation_in_place_becomes_part_of_the_layer(activation):
    found, _ = epilogues(Function(lambda self, x, conv: activation(inplace=True)(conv(x))))
    assert len(found) == 1
    assert found[0].startswith("bias+")


@pytest.mark.parametrize(
    ("function", "expected"),
    {
        "norm": (lambda self, x, conv: self.norm(conv(x)), ["bias"]),
        "norm, relu": (lambda self, x, conv: F.relu(self.norm(conv(x))), ["bias+relu"]),
        "sum": (lambda self, x, conv: F.relu(conv(x) + x), ["bias+residual+relu"]),
        "sum, other side": (lambda self, x, conv: x + conv(x), ["bias+residual"]),
        "sum in place": (lambda self, x, conv: conv(x).add_(x).relu_(), ["bias+residual+relu"]),
        "block": (
            lambda self, x, a, b: F.relu(self.norm(b(F.relu(a(x)))) + x),
            ["bias+relu", "bias+residual+relu"],
        ),
        "number": (lambda self, x, conv: conv(x) * 2 + 1, ["bias"]),
        "dropout": (
            lambda self, x, conv: F.relu(F.dropout(conv(x), training=self.training)),
            ["bias+relu"],
        ),
    }.values(),
)
def test_what_follows_a_layer_becomes_part_of_it(function, expected):
    layers = 1 + (len(expected) > 1)
    found, prepared = epilogues(Function(function, layers))
    assert found == expected
    assert not plain(prepared)


# Each chain of what follows a dilated convolution, the epilogue where the dilation divides the size
# of the map, and where it does not: a cropped map has no sum with a residual in its layer.
DILATED = {
    "norm, relu": (lambda self, x, conv: F.relu(self.norm(conv(x))), ["bias+relu"] * 2),
    "sum": (
        lambda self, x, conv: F.silu(x + self.norm(conv(x))),
        ["bias+residual+silu", "bias"],
    ),
    "two": (
        lambda self, x, conv: F.relu(conv(F.relu(conv(x)))),
        [["bias+relu"] * 2, ["bias+relu"] * 2],
    ),
    "to itself": (lambda self, x, conv: (y := conv(x)) + y, ["bias", "bias"]),
    "used twice": (lambda self, x, conv: F.relu(y := conv(x)) + y, ["bias", "bias"]),
}


@pytest.mark.parametrize("name", DILATED)
@pytest.mark.parametrize("divides", [True, False])
def test_what_follows_a_dilated_layer_becomes_part_of_it(name, divides):
    function, each = DILATED[name]
    net = Function(function)
    net.layers[0] = nn.Conv2d(4, 4, 3, padding=3, dilation=3)
    expected = each[not divides]
    found, _ = epilogues(net, (4, 6, 9 if divides else 8))
    assert found == ([expected] if isinstance(expected, str) else expected)


@pytest.mark.parametrize(
    ("function", "expected", "stays"),
    {
        "used twice": (lambda self, x, conv: F.relu(y := conv(x)) + y, ["bias"], "aten.relu"),
        "to itself": (lambda self, x, conv: (y := conv(x)) + y, ["bias"], "aten.add"),
        "after relu": (lambda self, x, conv: F.relu(conv(x)) + x, ["bias+relu"], "aten.add"),
        "norm after relu": (
            lambda self, x, conv: self.norm(F.relu(conv(x))),
            ["bias+relu"],
            "batch_norm",
        ),
        "broadcast": (
            lambda self, x, conv: conv(x) + x.mean((2, 3), keepdim=True),
            ["bias"],
            "aten.add",
        ),
        "alpha": (lambda self, x, conv: torch.add(conv(x), x, alpha=2), ["bias"], "aten.add"),
        "clamp": (lambda self, x, conv: conv(x).clamp(0, 5), ["bias"], "aten.clamp"),
        "other leak": (lambda self, x, conv: F.leaky_relu(conv(x)), ["bias"], "aten.leaky_relu"),
    }.values(),
)
def test_what_cannot_be_part_of_a_layer_stays(function, expected, stays):
    found, prepared = epilogues(Function(function))
    assert found == expected
    assert any(stays in name for name in plain(prepared))


def slot(name, **binding):
    """A slot with an operator of the zoo, of 4 channels and maps of 6 x 6."""
    sizes = {"C_in": 4, "C_out": 4, "H": 6, "W": 6} | binding
    placeholder = Placeholder(sizes, original=nn.Conv2d(4, 4, 3, padding=1))
    operator = zoo.load(name)
    used = {n: size for n, size in sizes.items() if n in operator.variables}
    placeholder.replace(operator.kernel_pack({"N": 1} | used))
    return placeholder


@pytest.mark.parametrize(
    ("operator", "expected"), [("conv2d", "bias+relu"), ("grouped-shared", "scale+bias+relu")]
)
def test_norm_is_folded_into_a_weight_or_a_scale(operator, expected):
    net = nn.Sequential(slot(operator, k=3, g=2), normalisation(4), nn.ReLU())
    found, prepared = epilogues(net)
    assert found == [expected]
    assert not plain(prepared)


def test_equal_values_are_computed_once():
    def function(self, x, a, b):
        return a(F.avg_pool2d(x, 2)) * b(F.avg_pool2d(x, 2))

    _, prepared = epilogues(Function(function, 2))
    pools = [n for n in prepared.graph.graph.nodes if "avg_pool" in str(n.target)]
    assert len(pools) == 1


def test_what_depends_on_weights_alone_is_a_constant():
    def function(self, x, conv):
        return conv(x) + self.norm.weight.exp().view(1, -1, 1, 1)

    found, prepared = epilogues(Function(function))
    assert found == ["bias"]
    assert not plain(prepared)


def test_the_network_stays_as_it_is():
    net = Function(lambda self, x, conv: F.relu(self.norm(conv(x)))).eval()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    prepare(net, (torch.zeros(1, 4, 6, 6),), batch=True)
    for name, value in net.state_dict().items():
        assert torch.equal(value, before[name])
