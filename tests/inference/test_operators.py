"""Convolutions and linear layers as operators, and weights that carry the channel of the output."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from syno.inference.carriers import carriers
from syno.inference.layer import Computation
from syno.inference.passes.layers import layers_of
from syno.inference.prepare import prepare
from syno.operators import zoo
from syno.operators.emitted import load_module

pytestmark = pytest.mark.usefixtures("one_torch_thread")


class Computed(nn.Module):
    """A convolution whose weight depends on the input."""

    def forward(self, x):
        return F.conv2d(x, x.mean((0, 2, 3), keepdim=True))


class Padded(nn.Module):
    """A convolution of a map that is padded with zeros first."""

    def __init__(self, layer, amounts):
        super().__init__()
        self.layer, self.amounts = layer, amounts

    def forward(self, x):
        return self.layer(nn.functional.pad(x, self.amounts))


# A layer, and the shape of its input without the batch.
COVERED = {
    "3x3": (nn.Conv2d(4, 6, 3, padding=1), (4, 5, 7)),
    "1x1": (nn.Conv2d(4, 6, 1, bias=False), (4, 5, 7)),
    "5x3": (nn.Conv2d(4, 6, (5, 3), padding=(2, 1)), (4, 6, 7)),
    "3x1": (nn.Conv2d(4, 6, (3, 1), padding=(1, 0)), (4, 6, 7)),
    "stride 2": (nn.Conv2d(4, 6, 3, stride=2, padding=1), (4, 8, 6)),
    "stride 2, odd size": (nn.Conv2d(4, 6, 3, stride=2, padding=1), (4, 7, 9)),
    "1x1, stride 2, odd size": (nn.Conv2d(4, 6, 1, stride=2), (4, 7, 6)),
    "stride 2 and 1": (nn.Conv2d(4, 6, 3, stride=(2, 1), padding=1), (4, 8, 5)),
    "7x7, stride 2": (nn.Conv2d(3, 4, 7, stride=2, padding=3), (3, 12, 12)),
    "grouped": (nn.Conv2d(4, 6, 3, padding=1, groups=2), (4, 5, 7)),
    "grouped 1x1": (nn.Conv2d(4, 6, 1, groups=2), (4, 5, 7)),
    "depthwise": (nn.Conv2d(4, 4, 3, padding=1, groups=4), (4, 5, 7)),
    "depthwise, multiplied": (nn.Conv2d(4, 8, 3, padding=1, groups=4), (4, 5, 7)),
    "patches": (nn.Conv2d(3, 8, 4, stride=4), (3, 8, 12)),
    "same": (nn.Conv2d(4, 6, 3, padding="same"), (4, 5, 7)),
    "valid 1x1": (nn.Conv2d(4, 6, 1, padding="valid"), (4, 5, 7)),
    "one dimension": (nn.Conv1d(4, 6, 3, padding=1), (4, 9)),
    "one dimension, grouped, stride 2": (
        nn.Conv1d(4, 6, 5, stride=2, padding=2, groups=2),
        (4, 10),
    ),
    "three dimensions": (nn.Conv3d(4, 6, 3, padding=1), (4, 5, 4, 6)),
    "three dimensions, grouped, stride 2": (
        nn.Conv3d(4, 6, 3, stride=2, padding=1, groups=2),
        (4, 6, 4, 8),
    ),
    "three dimensions, three kernels": (
        nn.Conv3d(4, 6, (3, 1, 5), stride=(1, 2, 1), padding=(1, 0, 2)),
        (4, 4, 6, 5),
    ),
    "transposed": (nn.ConvTranspose2d(4, 6, 2, stride=2), (4, 5, 7)),
    "transposed, grouped": (nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2), (4, 5, 7)),
    "transposed, depthwise": (nn.ConvTranspose2d(4, 4, 2, stride=2, groups=4), (4, 5, 7)),
    "transposed, overlapping": (nn.ConvTranspose2d(4, 6, 4, stride=2, padding=1), (4, 5, 7)),
    "transposed, overlapping, grouped": (
        nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2),
        (4, 5, 7),
    ),
    "transposed, stride 1": (nn.ConvTranspose2d(4, 6, 3, padding=1), (4, 5, 7)),
    "transposed, two kernels": (
        nn.ConvTranspose2d(4, 6, (3, 2), stride=(1, 2), padding=(1, 0), bias=False),
        (4, 5, 7),
    ),
    "transposed, one dimension": (nn.ConvTranspose1d(4, 6, 8, stride=4, padding=2), (4, 9)),
    "transposed, three dimensions": (nn.ConvTranspose3d(4, 6, 2, stride=2), (4, 3, 4, 5)),
    "dilated": (nn.Conv2d(4, 6, 3, padding=2, dilation=2), (4, 6, 8)),
    "dilated, odd size": (nn.Conv2d(4, 6, 3, padding=2, dilation=2), (4, 7, 5)),
    "dilated, 5x3": (nn.Conv2d(4, 6, (5, 3), padding=(2, 3), dilation=(1, 3)), (4, 5, 7)),
    "dilated, depthwise": (nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=4), (4, 6, 5)),
    "dilated, same": (nn.Conv2d(4, 6, 3, padding="same", dilation=3), (4, 6, 8)),
    "dilated beyond the map": (nn.Conv2d(4, 6, 3, padding=9, dilation=9), (4, 4, 4)),
    "dilated 1x1": (nn.Conv2d(4, 6, 1, stride=2, dilation=2), (4, 6, 6)),
    "dilated, one dimension": (nn.Conv1d(4, 6, 3, padding=8, dilation=8), (4, 64)),
    "dilated, grouped": (nn.Conv1d(4, 6, 5, padding=6, dilation=3, groups=2), (4, 10)),
    "no padding": (nn.Conv2d(4, 6, 3), (4, 7, 6)),
    "no padding, 5x3, strides 2 and 1": (nn.Conv2d(4, 6, (5, 3), stride=(2, 1)), (4, 10, 7)),
    "padding of more than half": (nn.Conv2d(4, 6, 3, padding=3), (4, 5, 4)),
    "padding of less than half, stride 3": (nn.Conv1d(4, 6, 7, stride=3, padding=1), (4, 17)),
    "even": (nn.Conv2d(4, 6, 2, padding=1), (4, 7, 7)),
    "even, stride 2": (nn.Conv2d(4, 6, 4, stride=2, padding=1), (4, 8, 6)),
    "even, stride 4, no padding": (nn.Conv1d(4, 6, 8, stride=4), (4, 30)),
    "even, same": (nn.Conv2d(4, 6, 4, padding="same"), (4, 7, 6)),
    "even, same, dilated": (nn.Conv1d(4, 6, 2, padding="same", dilation=3), (4, 11)),
    "a whole map": (nn.Conv2d(4, 6, (5, 4), stride=3), (4, 5, 4)),
    "patches and a rest": (nn.Conv2d(4, 6, 3, stride=3), (4, 8, 10)),
    "dilated, no padding": (nn.Conv1d(4, 6, 3, dilation=2), (4, 12)),
    "dilated, no padding, depthwise": (nn.Conv2d(4, 4, 3, dilation=(2, 3), groups=4), (4, 9, 8)),
    "stride beyond the kernel": (nn.Conv1d(4, 6, 2, stride=5), (4, 18)),
    "causal": (Padded(nn.Conv1d(4, 6, 3), (2, 0)), (4, 12)),
    "causal, stride 2": (Padded(nn.Conv1d(4, 6, 4, stride=2), (2, 0)), (4, 12)),
    "causal, dilated": (Padded(nn.Conv1d(4, 6, 3, dilation=4), (8, 0)), (4, 14)),
    "padded on three sides": (Padded(nn.Conv2d(4, 6, 3, stride=2), (0, 1, 2, 1)), (4, 8, 8)),
    "padded in one dimension": (Padded(nn.Conv2d(4, 6, 3), (1, 3)), (4, 6, 8)),
    "padded twice": (Padded(nn.Conv2d(4, 6, 5, padding=1), (1, 0, 0, 2)), (4, 6, 8)),
    "transposed, another size": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1), (4, 7, 7)),
    "transposed, no padding": (nn.ConvTranspose1d(4, 6, 8, stride=4), (4, 9)),
    "transposed, much padding": (nn.ConvTranspose1d(4, 6, 8, stride=2, padding=7), (4, 9)),
    "transposed, dilation": (
        nn.ConvTranspose2d(4, 6, 2, stride=2, padding=1, dilation=2, output_padding=1),
        (4, 7, 7),
    ),
    "dilation and stride": (
        nn.Conv2d(4, 6, 3, padding=2, dilation=2, stride=2),
        (4, 7, 7),
    ),
    "dilation and stride, depthwise": (
        nn.Conv2d(4, 4, (3, 2), dilation=(2, 3), stride=(3, 2), groups=4),
        (4, 9, 8),
    ),
    "dilation and stride of one dimension": (
        nn.Conv2d(4, 6, 3, padding=(4, 1), dilation=(3, 1), stride=2, groups=2),
        (4, 8, 9),
    ),
    "linear": (nn.Linear(5, 3), (5,)),
    "linear, rows": (nn.Linear(5, 3, bias=False), (4, 5)),
    "linear, positions": (nn.Linear(5, 3), (2, 4, 5)),
}
KEPT = {
    "computed weight": (Computed(), (4, 7, 7), "a weight that the network computes"),
}


@pytest.mark.parametrize("batch", [True, False])
@pytest.mark.parametrize("name", COVERED)
def test_a_layer_is_an_operator_with_the_same_values(name, batch):
    layer, shape = COVERED[name]
    x = torch.randn(2, *shape, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        prepared = prepare(layer.eval(), (x,), batch=batch)
        assert not prepared.kept
        assert prepared.batch == batch
        given = next(node for node in prepared.graph.graph.nodes if node.op == "placeholder")
        assert isinstance(given.meta["val"].shape[0], torch.SymInt) == batch
        assert len(layers_of(prepared.graph)) == 1
        torch.testing.assert_close(prepared.graph(x), layer(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", KEPT)
def test_what_the_language_does_not_cover_stays_and_says_why(name):
    layer, shape, reason = KEPT[name]
    x = torch.randn(2, *shape)
    prepared = prepare(layer.eval(), (x,), batch=True)
    assert not layers_of(prepared.graph)
    ((kept),) = prepared.kept
    assert kept.kind == "convolution"
    assert reason in kept.reason
    torch.testing.assert_close(prepared.graph(x), layer(x))


def test_only_operators_are_layers_without_convolutions():
    prepared = prepare(
        nn.Conv2d(2, 2, 3, padding=1).eval(),
        (torch.zeros(1, 2, 4, 4),),
        batch=True,
        convolutions=False,
    )
    assert not layers_of(prepared.graph)
    assert [kept.reason for kept in prepared.kept] == ["convolutions=False"]


@pytest.mark.parametrize("name", zoo.names())
def test_scaling_a_carrying_weight_scales_the_channels(name):
    operator, binding = zoo.load(name), zoo.binding(name)
    shapes = operator.shapes(binding)
    for channel in range(1, len(shapes.output)):
        computation = Computation(operator.text, binding)
        draw = torch.Generator().manual_seed(2)
        module = load_module(operator.source(binding))()
        for parameter in module.parameters():
            parameter.requires_grad_(False).copy_(torch.randn(parameter.shape, generator=draw))
        x = torch.randn(shapes.input, generator=draw)
        scale = torch.rand(shapes.output[channel], generator=draw) + 0.5
        over = [1] * len(shapes.output)
        over[channel] = -1
        expected = module(x) * scale.view(over)
        for number, channels in carriers(computation, channel).items():
            weight = list(module.parameters())[number]
            before = weight.clone()
            weight.mul_(scale[torch.from_numpy(channels)])
            torch.testing.assert_close(module(x), expected, atol=1e-4, rtol=1e-4)
            weight.copy_(before)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("conv2d", {0}), ("grouped", {0}), ("depthwise", {0}), ("low-rank-conv", {0})],
)
def test_the_weights_that_carry_the_channel(name, expected):
    found = carriers(Computation(zoo.load(name).text, zoo.binding(name)), 1)
    assert set(found) == expected


def test_a_shared_weight_carries_no_channel():
    found = carriers(Computation(zoo.load("grouped-shared").text, zoo.binding("grouped-shared")), 1)
    assert found == {}
