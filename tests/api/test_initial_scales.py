"""First weights: results and gradients of an operator vary as those of the layer it replaces."""

import copy
import pickle

import pytest
import torch
from torch import nn

import syno
from syno.network.placeholder import slots
from syno.operators import zoo
from syno.operators.initialization import Reference, reference_of
from syno.operators.layer import Layer

CHANNELS, SIZE = 16, 8
SPECIFICATION = syno.Specification(
    "[N, C_in: unordered, H, H]",
    "[N, C_out: unordered, H, H]",
    ["N: 0", "C_in: 2", "C_out: 4", "H: 0"],
    ["k=3: 2", "s=2: 2", "g=4: 2"],
    passed_through=[(0, 0)],
    bindings=[{"N": 1, "C_in": CHANNELS, "C_out": CHANNELS, "H": SIZE}],
    max_depth=10,
    max_splits=2,
    max_merges=1,
    min_unfold_ratio=1.3,
)


def squares(make, shape, rounds):
    """The mean of y^2 and of (dL/dx)^2 over modules that are made, for x, dL/dy of variance 1."""
    torch.manual_seed(1)
    forward = backward = 0.0
    for _ in range(rounds):
        x = torch.randn(shape, requires_grad=True)
        y = make()(x)
        y.backward(torch.randn_like(y))
        forward += y.detach().square().mean().item() / rounds
        backward += x.grad.square().mean().item() / rounds
    return forward, backward


def drawn(pack):
    """Makes kernels like that of a fresh pack, with other weights."""
    torch.manual_seed(7)
    made = type(pack)(pack.operator, pack.binding, reference=pack.reference).kernel
    torch.manual_seed(7)
    bare = type(made)()
    factors = [
        (a.norm() / b.norm()).item() for a, b in zip(*map(weights, (made, bare)), strict=True)
    ]

    def make():
        kernel = type(made)()
        with torch.no_grad():
            for weight, factor in zip(weights(kernel), factors, strict=True):
                weight.mul_(factor)
        return kernel

    return make


def weights(module):
    return list(module.parameters())


@pytest.fixture(scope="module")
def layer():
    """A 3 x 3 convolution that is far from variance 1, in a slot, and what it does to data."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, bias=False))
    with torch.no_grad():
        net[0].weight.mul_(3.0)
    net = syno.substitute(net, example_input=torch.zeros(1, CHANNELS, SIZE, SIZE))
    return net, squares(lambda: net, (64, CHANNELS, SIZE, SIZE), 4)


@pytest.mark.slow
def test_two_hundred_random_operators_vary_as_the_layer_they_replace(layer):
    net, (forward, backward) = layer
    found = syno.walk(SPECIFICATION, count=4000, seed=3).operators[:200]
    assert len(found) == 200

    wrong = {}
    for operator in found:
        twin = copy.deepcopy(net)
        syno.replace(twin, operator)
        make = drawn(slots(twin)["0"].kernel)
        ours = squares(make, (4, CHANNELS, SIZE, SIZE), 6)
        ratios = ours[0] / forward, ours[1] / backward
        if not all(0.5 < ratio < 2.0 for ratio in ratios):
            wrong[operator.key[:8]] = ratios
    assert not wrong


@pytest.mark.parametrize(
    "name", [name for name in zoo.names() if "contract" in zoo.load(name).text]
)
def test_an_operator_of_the_zoo_has_the_gain_asked_for(name):
    operator, binding = zoo.load(name), dict(zoo.binding(name))
    gain = 1.7
    pack = operator.kernel_pack(binding, reference=Reference(gain))
    shapes = operator.shapes(binding)
    forward, backward = squares(drawn(pack), shapes.input, 80)
    ratio = torch.Size(shapes.output).numel() / torch.Size(shapes.input).numel()
    assert 0.6 < forward / gain**2 < 1.6
    assert 0.6 < backward / (gain**2 * ratio) < 1.6


def test_without_scales_some_operators_are_far_off():
    """What the scales are for: variance 1 over the terms summed ignores repeats and masks."""
    operator = zoo.load("pooled-conv")
    binding = dict(zoo.binding("pooled-conv"))
    shape = operator.shapes(binding).input
    plain, _ = squares(drawn(Layer(operator, binding, reference=None)), shape, 40)
    scaled, _ = squares(drawn(operator.kernel_pack(binding)), shape, 40)
    assert abs(scaled - 1.0) < 0.4
    assert abs(plain - 1.0) > 2 * abs(scaled - 1.0)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Conv2d(8, 12, 3, padding=1, bias=False), (8, 5, 5)),
        (nn.Conv2d(8, 12, 3, padding=2, dilation=2, bias=False), (8, 6, 4)),
        (nn.Conv2d(8, 12, 1, bias=False), (8, 5, 5)),
        (nn.Conv2d(8, 8, 3, padding=1, groups=8, bias=False), (8, 4, 4)),
        (nn.Conv2d(8, 12, 3, padding=1, padding_mode="circular", bias=False), (8, 5, 5)),
        (nn.Conv2d(8, 12, (1, 5), padding=(0, 2), bias=False), (8, 5, 5)),
        (nn.Linear(12, 7, bias=False), (5, 12)),
    ],
    ids=["conv", "dilated", "pointwise", "depthwise", "circular", "one-row", "linear"],
)
def test_the_gain_of_a_layer_is_what_is_measured(layer, shape):
    torch.manual_seed(2)
    with torch.no_grad():
        y = layer(torch.randn(4000, *shape))
    found = reference_of(layer, y.shape[1:])
    assert found.gain == pytest.approx(y.square().mean().sqrt().item(), rel=0.03)
    assert found.norm == pytest.approx(layer.weight.norm().item(), rel=1e-5)
    assert found.elements == layer.weight.numel()


def test_a_layer_that_says_nothing_leaves_variance_1():
    silent = nn.Conv2d(4, 4, 3)
    nn.init.zeros_(silent.weight)
    assert reference_of(silent, (4, 8, 8)) == Reference()
    assert reference_of(nn.ReLU(), (4, 8, 8)) == Reference()


def test_a_copy_and_a_pickle_keep_weights_and_scales(layer):
    net, _ = layer
    twin = copy.deepcopy(net)
    syno.replace(twin, zoo_operator("conv1x1"))
    pack = slots(twin)["0"].kernel
    again = pickle.loads(pickle.dumps(pack))
    assert again.kernel.lr_multipliers == pack.kernel.lr_multipliers
    assert copy.deepcopy(pack).kernel.lr_multipliers == pack.kernel.lr_multipliers
    for name, weight in pack.state_dict().items():
        assert torch.equal(weight, again.state_dict()[name])


def test_rates_make_up_for_number_and_scale(layer):
    """conv1x1 beside 3 x 3: a ninth of the elements, each of about nine times the variance."""
    net, _ = layer
    twin = copy.deepcopy(net)
    syno.replace(twin, zoo_operator("conv1x1"))
    pack, original = slots(twin)["0"].kernel, slots(twin)["0"].original
    (scale,) = pack.kernel.lr_multipliers.values()
    variance = pack.kernel.w0.square().mean() / original.weight.square().mean()
    assert scale == pytest.approx(variance.item() * (1 / 9) ** 0.5, rel=0.2)
    syno.replace(twin, zoo_operator("conv1x1"), scaled=False)
    assert not hasattr(slots(twin)["0"].kernel.kernel, "lr_multipliers")


def zoo_operator(name):
    """An operator of the zoo under the shapes of the layer."""
    text = zoo.load(name).text.replace(", W]", ", H]")
    return syno.Operator.from_text(text, SPECIFICATION)
