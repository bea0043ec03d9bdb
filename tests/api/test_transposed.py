"""Slots of transposed convolutions, whose operators make the feature map larger."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

import syno
from syno import UserError, zoo
from syno.adaptation.activations import record
from syno.network.surgery import slot_bindings
from syno.operands.layers import fit_to_network, layer_specification
from syno.operands.lookup import NamedOperator
from syno.operators.initialization import reference_of
from syno.study.specifications import small_strided, small_transposed

FILTERS = {
    nn.ConvTranspose1d: syno.conv_transpose1d,
    nn.ConvTranspose2d: syno.conv_transpose2d,
    nn.ConvTranspose3d: syno.conv_transpose3d,
}


def slotted(layer, *size):
    example = torch.zeros(1, layer.in_channels, *size)
    return syno.substitute(nn.Sequential(layer), FILTERS[type(layer)](), example)


def rows(net):
    return {row.name: row for row in syno.layer_report(net).rows}


def filled(net, name):
    """The network with an operator of the zoo in its slot, and the kernel there."""
    torch.manual_seed(1)
    named = NamedOperator(name, zoo.load(name), zoo.binding(name))
    syno.replace(net, fit_to_network(named, net, {}))
    (slot,) = syno.slots(net).values()
    return slot.kernel.kernel


def scattered(layer, window=3):
    """The weight [o, i, a, b, p, q] of a sub-pixel convolution that is the layer.

    Tap t of the layer lies at s * h + t - padding: s * (h + d) + p, which reads x[h] from h + d.
    """
    (stride, _), (padding, _) = layer.stride, layer.padding
    size = (layer.out_channels, layer.in_channels, window, window, stride, stride)
    weight = torch.zeros(size)
    taps = range(layer.kernel_size[0])
    for t, u in itertools.product(taps, taps):
        (d, p), (e, q) = divmod(t - padding, stride), divmod(u - padding, stride)
        a, b = window // 2 - d, window // 2 - e
        weight[:, :, a, b, p, q] = layer.weight.detach()[:, :, t, u].T
    return weight


def test_a_transposed_convolution_is_a_slot_with_its_own_costs():
    net = slotted(nn.ConvTranspose2d(8, 12, 2, stride=2), 6, 5)
    report = syno.layer_report(net)
    (row,) = report.rows
    assert row.binding == {"C_in": 8, "C_out": 12, "H": 6, "W": 5, "s": 2}
    assert (row.status, row.macs, row.params, row.pool) == ("slot", 8 * 12 * 4 * 30, 384, 1)
    assert report.macs == row.macs
    (slot,) = syno.slots(net).values()
    assert slot.shapes == ((8, 6, 5), (12, 12, 10))
    report = syno.replace(net, zoo.load("transposed-conv"))
    assert (report.new_macs, report.rows[0].new_params) == (row.macs, row.params)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"kernel_size": 3, "stride": 2, "padding": 1}, "padding (1, 1) and output padding (0, 0)"),
        ({"kernel_size": 3, "stride": 2}, "do not give a feature map of 2 times the size"),
        ({"kernel_size": 2, "stride": 2, "dilation": 2, "padding": 1}, "dilation 2"),
        ({"kernel_size": (2, 4), "stride": 2}, "kernel 2x4 with stride 2x2 is not square"),
        ({"kernel_size": 2, "stride": (2, 1)}, "with stride 2x1 is not square"),
    ],
)
def test_other_transposed_convolutions_stay_with_a_reason(settings, reason):
    layers = nn.ConvTranspose2d(8, 8, 2, 2), nn.ConvTranspose2d(8, 8, **settings)
    net = syno.substitute(nn.Sequential(*layers), syno.conv_transpose2d(), torch.zeros(1, 8, 6, 6))
    assert reason in rows(net)["1"].reason


def test_a_filter_takes_kernels_strides_groups_and_names():
    layers = [
        nn.ConvTranspose2d(8, 8, 2, 2),
        nn.ConvTranspose2d(8, 8, 4, 2, 1, groups=2),
        nn.ConvTranspose2d(8, 8, 3, 3),
    ]
    example = torch.zeros(1, 8, 4, 4)
    for where, names in (
        (syno.conv_transpose2d(), ["0", "1", "2"]),
        (syno.conv_transpose2d(kernel=4), ["1"]),
        (syno.conv_transpose2d(groups=1), ["0", "2"]),
        (syno.conv_transpose2d(stride=(3, 4)), ["2"]),
        (syno.conv_transpose2d(name="[01]", minimum=8), ["1"]),
    ):
        assert list(syno.slots(syno.substitute(nn.Sequential(*layers), where, example))) == names
    with pytest.raises(UserError, match="'stride' is a positive integer"):
        syno.conv_transpose2d(stride=0)


def test_a_layer_that_is_called_with_an_output_size_stays():
    class Up(nn.Module):
        def __init__(self):
            super().__init__()
            self.up = nn.ConvTranspose2d(8, 8, 2, 2)
            self.free = nn.ConvTranspose2d(8, 8, 2, 2)

        def forward(self, x):
            return self.up(self.free(x), output_size=(24, 24))

    net = syno.substitute(Up(), syno.conv_transpose2d(), torch.zeros(1, 8, 6, 6))
    assert list(syno.slots(net)) == ["free"]
    assert rows(net)["up"].reason == "it is called with more than its input"


@pytest.mark.parametrize("stride", [2, 3, 4])
def test_the_operator_of_the_zoo_is_the_layer(stride):
    torch.manual_seed(0)
    layer = nn.ConvTranspose2d(8, 12, stride, stride=stride)
    x = torch.randn(2, 8, 5, 6)
    expected = layer(x)
    net = slotted(layer, 5, 6)
    assert torch.equal(net(x), expected)
    kernel = filled(net, "transposed-conv")
    with torch.no_grad():
        kernel.w0.copy_(layer.weight.transpose(0, 1))
    torch.testing.assert_close(net(x), expected)


@pytest.mark.parametrize(
    "settings",
    [(4, 2, 1), (3, 2, 1, 1), (2, 2), (6, 2, 2), (5, 3, 1), (3, 3), (1, 2, 0, 1)],
    ids=str,
)
def test_a_sub_pixel_convolution_holds_overlapping_ones(settings):
    torch.manual_seed(0)
    layer = nn.ConvTranspose2d(8, 12, *settings)
    x = torch.randn(2, 8, 5, 6)
    net = slotted(layer, 5, 6)
    kernel = filled(net, "sub-pixel-conv")
    with torch.no_grad():
        kernel.w0.copy_(scattered(layer))
    torch.testing.assert_close(net(x), layer(x))


def test_layers_of_different_strides_share_an_operator():
    layers = nn.ConvTranspose2d(8, 8, 2, 2), nn.ConvTranspose2d(8, 8, 4, 4)
    x = torch.randn(2, 8, 4, 4)
    net = syno.substitute(nn.Sequential(*layers), syno.conv_transpose2d(), x[:1])
    found = slot_bindings(net, small_transposed())["bindings"]
    assert found == [
        {"C_in": 8, "C_out": 8, "H": 4, "s": 2},
        {"C_in": 8, "C_out": 8, "H": 8, "s": 4},
    ]
    expected = nn.Sequential(*layers)(x)
    syno.replace(net, zoo.load("transposed-conv"))
    with torch.no_grad():
        for slot in syno.slots(net).values():
            slot.kernel.kernel.w0.copy_(slot.original.weight.transpose(0, 1))
    torch.testing.assert_close(net(x), expected)


def test_sizes_come_from_the_first_run_where_there_was_no_example():
    net = syno.substitute(nn.Sequential(nn.ConvTranspose2d(8, 8, 2, 2)), syno.conv_transpose2d())
    net(torch.zeros(1, 8, 6, 5))
    (slot,) = syno.slots(net).values()
    assert slot.binding == {"C_in": 8, "C_out": 8, "H": 6, "W": 5, "s": 2}
    assert slot.shapes == ((8, 6, 5), (8, 12, 10))
    assert syno.replace(net, zoo.load("transposed-conv")).replaced


def test_a_factor_of_another_meaning_is_not_the_stride():
    net = slotted(nn.ConvTranspose2d(8, 8, 4, 4), 6, 6)
    other = syno.Specification(
        "[N, C_in, H, H]",
        "[N, C_out, t*H, t*H]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
        ["t=4: 2", "s=2: 2"],
        passed_through=[(0, 0)],
    )
    assert slot_bindings(net, other)["bindings"] == [{"C_in": 8, "C_out": 8, "H": 6}]


def test_a_formula_has_the_shapes_of_the_layers():
    net = slotted(nn.ConvTranspose2d(8, 12, 2, 2), 6, 6)
    specification = layer_specification(net, {})
    assert (specification.input, specification.output) == (
        "[N, C_in: unordered, H, W]",
        "[N, C_out: unordered, s*H, s*W]",
    )
    operator = syno.Operator.parse(
        "y[n,o,s*h+p,s*w+q] = sum(i) x[n,i,h,w] * A[i,p,q] * B[o,i]", specification
    )
    assert syno.replace(net, operator).replaced
    halved = nn.Sequential(nn.Conv2d(8, 12, 3, 2, 1))
    strided = syno.substitute(halved, syno.conv2d(stride=2, pool=False), torch.zeros(1, 8, 8, 8))
    assert layer_specification(strided, {}).input == "[N, C_in: unordered, s*H, s*W]"


MAPS = {"L": (nn.ConvTranspose1d, (6,)), "D, H, W": (nn.ConvTranspose3d, (4, 5, 6))}


@pytest.mark.parametrize("maps", MAPS)
def test_signals_and_volumes_are_made_larger_in_the_same_way(maps):
    torch.manual_seed(0)
    kind, size = MAPS[maps]
    layer = kind(8, 12, 3, stride=3)
    net = slotted(layer, *size)
    names = maps.lower().replace(" ", "")
    places = ",".join(f"s*{name}+{tap}" for name, tap in zip(names.split(","), "abe", strict=False))
    taps = ",".join("abe"[: len(size)])
    operator = syno.Operator.parse(
        f"y[n,o,{places}] = sum(i) x[n,i,{names}] * w0[o,i,{taps}]", layer_specification(net, {})
    )
    assert [row.name for row in syno.replace(net, operator).replaced] == ["0"]
    (slot,) = syno.slots(net).values()
    with torch.no_grad():
        slot.kernel.kernel.w0.copy_(layer.weight.transpose(0, 1))
    x = torch.randn(2, 8, *size)
    torch.testing.assert_close(net(x), layer(x))


def in_space(operator, specification):
    """Whether the operator is in the specification's space, with the reason otherwise."""
    sizes = [{"C_in": 16, "C_out": 32, "H": 8}]
    found = syno.why_not(operator, specification.with_changes(bindings=sizes))
    return found["admitted"], found["explanation"]


@pytest.mark.parametrize("name", ["transposed-conv", "sub-pixel-conv"])
def test_the_default_space_has_the_operators_of_the_zoo(name):
    text = zoo.load(name).text.replace("W]", "H]")
    there, found = in_space(syno.Operator.from_text(text), small_transposed())
    assert there, found


def test_the_default_space_of_strides_has_the_plain_convolution():
    specification = small_strided()
    operator = syno.Operator.parse(
        "y[n,o,h,w] = sum(i:C_in, a:k, b:k) x[n,i,s*h+a-k/2,s*w+b-k/2] * w0[o,i,a,b]", specification
    )
    there, found = in_space(operator, specification)
    assert there, found


@pytest.mark.parametrize(
    "layer",
    [
        nn.ConvTranspose2d(8, 12, 2, 2, bias=False),
        nn.ConvTranspose2d(8, 12, 4, 2, 1, bias=False),
        nn.ConvTranspose2d(8, 12, 3, 2, 1, 1, groups=4, bias=False),
        nn.ConvTranspose2d(8, 12, 3, 1, 1, dilation=2, bias=False),
        nn.ConvTranspose2d(8, 12, (1, 3), (1, 2), bias=False),
    ],
    ids=str,
)
def test_the_gain_of_a_transposed_layer_is_what_is_measured(layer):
    torch.manual_seed(2)
    with torch.no_grad():
        y = layer(torch.randn(3000, 8, 5, 4))
    found = reference_of(layer, y.shape[1:])
    assert found.gain == pytest.approx(y.square().mean().sqrt().item(), rel=0.03)


def test_an_operator_begins_with_the_scale_of_its_layer():
    torch.manual_seed(0)
    layer = nn.ConvTranspose2d(16, 16, 4, 2, 1, bias=False)
    with torch.no_grad():
        layer.weight.mul_(3.0)
    x = torch.randn(64, 16, 8, 8)
    expected = layer(x).square().mean()
    for name in ("transposed-conv", "sub-pixel-conv"):
        net = slotted(layer, 8, 8)
        filled(net, name)
        assert 0.7 < net(x).square().mean() / expected < 1.4


@pytest.mark.parametrize(
    ("layer", "where", "size"),
    [
        (nn.ConvTranspose2d(8, 6, 2, 2), syno.conv_transpose2d(), (5, 6)),
        (nn.Conv1d(8, 6, 3, padding=1), syno.conv1d(), (6,)),
        (nn.Conv3d(8, 6, 3, padding=1), syno.conv3d(), (4, 5, 6)),
    ],
    ids=["transposed", "signal", "volume"],
)
def test_what_a_kernel_shall_return_is_without_the_bias(layer, where, size):
    torch.manual_seed(0)
    nn.init.normal_(layer.bias)
    x = torch.randn(4, 8, *size)
    net = syno.substitute(nn.Sequential(layer), where, x[:1])
    (pair,) = record(net, [x]).values()
    plain = layer(x) - layer.bias.view(-1, *[1] * len(size))
    torch.testing.assert_close(pair.y, plain)
