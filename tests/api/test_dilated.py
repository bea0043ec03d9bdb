"""Slots of dilated convolutions, whose operators compute on each phase of the map."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import syno
from syno import UserError
from syno.adaptation.activations import record
from syno.adaptation.pipeline.kinds import kinds_of
from syno.adaptation.pipeline.pool import Candidate
from syno.adaptation.pipeline.slot_latencies import slot_latencies
from syno.measure.slots import time_slots
from syno.network.placeholder import from_phases, to_phases
from syno.network.surgery import slot_bindings
from syno.operands.layers import layer_specification
from syno.operators.initialization import reference_of

FILTERS = {nn.Conv1d: syno.conv1d, nn.Conv2d: syno.conv2d, nn.Conv3d: syno.conv3d}
# A layer, the sizes of its map, and those of a phase.
LAYERS = {
    "signal": (nn.Conv1d(6, 8, 3, padding=4, dilation=4), (32,), (8,)),
    "signal with a rest": (nn.Conv1d(6, 8, 5, padding=6, dilation=3), (32,), (11,)),
    "map": (nn.Conv2d(6, 8, 3, padding=2, dilation=2), (12, 16), (6, 8)),
    "map with a rest": (nn.Conv2d(6, 8, 3, padding=2, dilation=2, bias=False), (11, 13), (6, 7)),
    "two dilations": (nn.Conv2d(6, 8, 3, padding=(1, 3), dilation=(1, 3)), (5, 14), (5, 5)),
    "same": (nn.Conv2d(6, 8, 3, padding="same", dilation=2), (12, 12), (6, 6)),
    "volume": (nn.Conv3d(6, 8, 3, padding=2, dilation=2), (8, 9, 10), (4, 5, 5)),
}


def slotted(layer, *size, **options):
    example = torch.zeros(1, layer.in_channels, *size)
    return syno.substitute(nn.Sequential(layer), FILTERS[type(layer)](**options), example)


def convolution(net):
    """A convolution with windows of 3 or 5 elements for the slot of a network, and the order of
    its weight's dimensions."""
    (slot,) = syno.slots(net).values()
    window = slot.original.kernel_size[0]
    places = [name.lower() for name in slot.input_names[2:]]
    taps = "abe"[: len(places)]
    reads = ",".join(f"{place}+{tap}-k/2" for place, tap in zip(places, taps, strict=True))
    sums = ", ".join(f"{tap}:k" for tap in taps)
    operator, ((_, order),) = syno.Operator.parse_with_weights(
        f"y[n,o,{','.join(places)}] = sum(i, {sums}) x[n,i,{reads}] * w0[o,i,{','.join(taps)}]",
        layer_specification(net, {"k": window}),
    )
    return operator, order


@pytest.mark.parametrize("name", LAYERS)
def test_a_convolution_in_a_slot_is_the_dilated_one(name):
    layer, size, phase = LAYERS[name]
    net = slotted(layer, *size)
    (slot,) = syno.slots(net).values()
    assert slot.shapes == ((6, *phase), (8, *phase))
    before = syno.layer_report(net)
    (row,) = before.rows
    assert row.status == "slot"
    assert tuple(row.binding.values()) == (6, 8, *phase)
    x = torch.randn(3, 6, *size)
    torch.testing.assert_close(net(x), layer(x))
    operator, order = convolution(net)
    report = syno.replace(net, operator)
    with torch.no_grad():
        slot.kernel.kernel.w0.copy_(layer.weight.permute(order))
    torch.testing.assert_close(slot(x), layer(x), atol=1e-5, rtol=1e-5)
    # All phases, with the zeros that fill them up.
    whole = [n * d for n, d in zip(phase, slot._dilation, strict=True)]
    assert report.new_macs == layer.weight.numel() * torch.Size(whole).numel()
    assert report.rows[0].new_params == row.params


def test_phases_are_the_positions_of_a_dilation():
    x = torch.arange(2 * 7 * 9.0).reshape(1, 2, 7, 9)
    phases = to_phases(x, (2, 3))
    assert phases.shape == (6, 2, 4, 3)
    torch.testing.assert_close(phases[5, :, :3], x[0, :, 1::2, 2::3])
    assert not phases[5, :, 3].any()
    assert torch.equal(from_phases(phases, (2, 3), (7, 9)), x)


def test_an_operator_in_a_dilated_slot_is_trained():
    torch.manual_seed(0)
    net = slotted(nn.Conv1d(4, 4, 3, padding=4, dilation=4), 32)
    syno.replace(net, convolution(net)[0])
    target = nn.Conv1d(4, 4, 3, padding=4, dilation=4).requires_grad_(False)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.03)
    losses = []
    for _ in range(150):
        x = torch.randn(16, 4, 32)
        loss = nn.functional.mse_loss(net(x), target(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    # Only windows with the gaps of the dilation can become the target.
    assert losses[-1] < 1e-3 * losses[0]


@pytest.mark.parametrize(
    ("layer", "options", "reason"),
    [
        (nn.Conv1d(8, 8, 3, padding=4, dilation=4), {"dilation": (1, 2)}, "dilation 4"),
        (nn.Conv1d(8, 8, 3, padding=4), {}, "padding (4,) (zeros) does not keep"),
        (nn.Conv1d(8, 8, 3, padding=1, dilation=4), {}, "padding (1,) (zeros) does not keep"),
        (nn.Conv1d(8, 8, 3, 2, 4, 4), {"stride": 2}, "dilation 4 with stride 2"),
        (
            nn.Conv1d(8, 8, 3, padding=16, dilation=16),
            {},
            "L=2 in each phase of its dilation is below 4",
        ),
    ],
)
def test_dilated_layers_that_stay_say_why(layer, options, reason):
    with pytest.raises(UserError) as caught:
        slotted(layer, 32, **options)
    assert reason in str(caught.value)


@pytest.mark.parametrize("size", [64, 66])
def test_even_kernels_that_divide_a_map_by_their_stride_are_slots(size):
    layers = [nn.Conv1d(8, 8, 8, 2, 3), nn.Conv1d(8, 12, 4, 4), nn.Conv1d(12, 12, 3, padding=1)]
    net = nn.Sequential(*layers)
    x = torch.randn(2, 8, size)
    net = syno.substitute(net, syno.conv1d(stride=(1, 2, 4)), x)
    before = net(x)
    places = {name: slot.shapes for name, slot in syno.slots(net).items()}
    assert places["1"] == ((8, 8), (12, 8))
    operator = syno.Operator.parse(
        "y[n,o,l] = sum(i, a:k) x[n,i,l+a-k/2] * w[o,i,a]", layer_specification(net, {"k": 3})
    )
    assert len(syno.replace(net, operator).replaced) == 3
    assert net(x).shape == before.shape
    refused = nn.Sequential(nn.Conv1d(8, 8, 4, padding=2), nn.Conv1d(8, 8, 4, 2, padding=2))
    with pytest.raises(UserError, match=r"padding \(2,\) \(zeros\) does not keep"):
        syno.substitute(refused, syno.conv1d(stride=(1, 2)), x)


def test_slots_of_different_dilations_share_a_specification():
    net = nn.Sequential(*(nn.Conv1d(8, 8, 3, padding=d, dilation=d) for d in (1, 2, 4, 4)))
    net = syno.substitute(net, example_input=torch.zeros(1, 8, 32))
    specification = layer_specification(net, {"k": 3})
    found = slot_bindings(net, specification)
    sizes = [(each.get("N", 1), each["L"]) for each in found["bindings"]]
    assert (sizes, found["multiplicities"]) == ([(1, 32), (2, 16), (4, 8)], [1, 1, 2])
    assert found["layer_macs"] == [3 * 64 * 32, 3 * 64 * 32, 2 * 3 * 64 * 32]


def test_slots_without_an_example_learn_their_phases_in_the_first_run():
    layer = nn.Conv2d(6, 8, 3, padding=2, dilation=2)
    net = syno.substitute(nn.Sequential(layer), syno.conv2d())
    net(torch.zeros(1, 6, 12, 14))
    (slot,) = syno.slots(net).values()
    assert slot.binding == {"C_in": 6, "C_out": 8, "H": 6, "W": 7}
    assert slot.shapes == ((6, 6, 7), (8, 6, 7))


def test_the_scale_of_weights_is_that_of_the_whole_map():
    layer = nn.Conv1d(6, 8, 3, padding=8, dilation=8)
    (slot,) = syno.slots(slotted(layer, 32)).values()
    assert slot.reference == reference_of(layer, (8, 32))


def test_what_a_dilated_slot_maps_is_recorded_in_phases():
    layer = nn.Conv1d(6, 8, 3, padding=2, dilation=2)
    net = slotted(layer, 12)
    x = torch.randn(3, 6, 12)
    (found,) = record(net.eval(), [x]).values()
    assert found.x.shape == (6, 6, 6)
    torch.testing.assert_close(found.x, to_phases(x, (2,)))
    bare = layer(x) - layer.bias[:, None]
    torch.testing.assert_close(found.y, to_phases(bare, (2,)))


@pytest.mark.slow
def test_times_of_dilated_slots_are_those_of_all_phases():
    net = slotted(nn.Conv1d(8, 8, 3, padding=4, dilation=4), 32)
    operator, _ = convolution(net)
    run = time_slots(net, {"conv": operator}, torch.zeros(2, 8, 32), rounds=2)
    original, conv = run.times
    assert (conv.replaced, conv.kept) == (1, 0)
    assert conv.macs == original.macs == 2 * 3 * 64 * 32
    # The way to the phases and back is timed beside the kernel.
    assert {time.kernel for time in run.kernels.times} >= {"original", "pool"}
    (kind,) = kinds_of(net, torch.zeros(1, 8, 32)).values()
    candidate = Candidate("conv", "given", operator.text, {"k": 3})
    assert operator.macs(kind.binding(candidate)) == 3 * 64 * 32
    for formats in ((), ("float32",)):
        found = slot_latencies(kind, [candidate], formats=formats, threads=1, rounds=2)
        assert {"original", "conv"} <= set(found) <= {"original", "removed", "conv"}
        assert min(each.ms for each in found.values()) > 0
