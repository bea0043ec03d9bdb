"""Kinds of layers that operators may replace: sizes, MACs, parameters. Requires PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import nn

from syno.network.layers import dilation_of, times
from syno.network.trace import Shapes

# The kind of filter of each convolution, and the variables of its feature map.
MAPS: dict[type[nn.Module], tuple[str, tuple[str, ...]]] = {
    nn.Conv1d: ("conv1d", ("L",)),
    nn.Conv2d: ("conv2d", ("H", "W")),
    nn.Conv3d: ("conv3d", ("D", "H", "W")),
    nn.ConvTranspose1d: ("conv_transpose1d", ("L",)),
    nn.ConvTranspose2d: ("conv_transpose2d", ("H", "W")),
    nn.ConvTranspose3d: ("conv_transpose3d", ("D", "H", "W")),
}


def is_linear(layer: nn.Module) -> bool:
    """nn.Linear, or transformers' Conv1D, whose weight is [H_in, H_out]."""
    return isinstance(layer, nn.Linear) or _is_transposed(layer)


def _is_transposed(layer: nn.Module) -> bool:
    kind = type(layer)
    return kind.__name__ == "Conv1D" and kind.__module__.startswith("transformers.")


def is_convolution(layer: nn.Module) -> bool:
    """A convolution of torch, transposed or not."""
    return isinstance(layer, nn.modules.conv._ConvNd)


def kind_of(layer: nn.Module) -> str | None:
    """The kind of filter that may take a layer."""
    if is_linear(layer):
        return "linear"
    return next((kind for each, (kind, _) in MAPS.items() if isinstance(layer, each)), None)


def sizes_of_map(layer: nn.Module) -> tuple[str, ...]:
    """The variables of the feature map of a convolution."""
    return next(names for each, (_, names) in MAPS.items() if isinstance(layer, each))


def features_of(layer: nn.Module) -> tuple[int, int]:
    """(H_in, H_out) of a linear layer."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    assert isinstance(layer.weight, torch.Tensor)
    h_in, h_out = layer.weight.shape
    return int(h_in), int(h_out)


def own_dilation(layer: nn.Module) -> tuple[int, ...]:
    """The dilation of a convolution that keeps the size of its map; () without."""
    if not isinstance(layer, nn.modules.conv._ConvNd) or layer.transposed:
        return ()
    dilation = dilation_of(cast("nn.Conv2d", layer))
    return dilation if any(d > 1 for d in dilation) else ()


def weight_params(layer: nn.Module) -> int:
    """Elements of a layer's weight; its bias stays in the slot."""
    weight = getattr(layer, "weight", None)
    return weight.numel() if isinstance(weight, torch.Tensor) else 0


def description(layer: nn.Module) -> str:
    """What a layer is, such as conv 3x3 /2."""
    if is_linear(layer):
        return "linear, transposed" if _is_transposed(layer) else "linear"
    if not isinstance(layer, nn.modules.conv._ConvNd):
        return type(layer).__name__
    name = "conv" if isinstance(layer, nn.Conv2d) else type(layer).__name__
    text = f"{name} {times(layer.kernel_size)}"
    text += f" /{layer.stride[0]}" if layer.stride[0] > 1 else ""
    text += f" dilation {times(layer.dilation)}" if max(layer.dilation) > 1 else ""
    return text + (f" groups {layer.groups}" if layer.groups > 1 else "")


def macs_of(layer: nn.Module, calls: Sequence[Shapes], batch: int) -> int:
    """MACs of a layer for one sample, over all its calls.

    An output element of a linear layer or a plain convolution, or an input element of a transposed
    one, meets a filter each. A layer may run on windows of a sample: its batch is larger then.
    """
    transposed = isinstance(layer, nn.modules.conv._ConvNd) and layer.transposed
    assert isinstance(layer.weight, torch.Tensor)
    filter_ = features_of(layer)[0] if is_linear(layer) else layer.weight[0].numel()
    elements = sum((given if transposed else made).numel() for given, made in calls)
    return filter_ * elements // max(batch, 1)


def sizes_of(layer: nn.Module, call: Shapes | None) -> dict[str, int]:
    """Sizes of a layer; those of its map where it is smaller, the input or the output."""
    if is_convolution(layer) and kind_of(layer) is not None:
        assert isinstance(layer, nn.modules.conv._ConvNd)
        binding = {"C_in": layer.in_channels, "C_out": layer.out_channels}
        names = sizes_of_map(layer)
        if call is not None:
            smaller = (call[0] if layer.transposed else call[1])[-len(names) :]
            steps = own_dilation(layer) or (1,) * len(smaller)
            binding |= {n: -(-size // d) for n, size, d in zip(names, smaller, steps, strict=False)}
        return binding
    if not is_linear(layer):
        return {}
    h_in, h_out = features_of(layer)
    binding = {"H_in": h_in, "H_out": h_out}
    if call is not None and len(call[1]) > 2:
        binding["seq_len"] = call[1][1:-1].numel()
    return binding
