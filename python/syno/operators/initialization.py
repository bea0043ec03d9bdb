"""How large an operator's weights begin, and how large steps they take. Needs torch.

Data and weights are taken as independent, of mean 0. An operator's results then have the mean
square

    E[y^2] = M * s_1^2 * ... * s_K^2

with M the `Operator.mean_square` (masked terms left out, repeated ones counted squared) and s_k^2
the variance of weight k. The weights get variances s_k^2 = c / fan_in_k, with fan_in_k the terms
that a plan sums per element around weight k, so that no stage grows or shrinks its data, and with c
such that E[y^2] is that of the layer replaced, its square gain. What goes back is then right, too:
the sums of E[y^2] over y and of E[(dL/dx)^2] over x have the same terms, and layer and operator
have x and y in common.

Steps: where SGD moves the layer's weight along its gradient g, results change by about |g|^2, and
over all weights the sum of E[g_k^2] is gain^2 / s_k^2 (the trace of the neural tangent kernel;
Jacot et al. 2018). Rates of s_k^2 / (K s_ref^2) times the layer's keep that trace; but a weight of
fewer elements moves results in fewer directions, in each by more, and what keeps the largest of
them is that times |w_k| / |w_ref| (elements). The geometric mean is taken, within a factor of 8.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from syno.operators.value import OperatorValue

# The farthest that a rate goes from the layer's.
_MOST = 8.0


@dataclass(frozen=True)
class Reference:
    """What a layer does to data of variance 1, for an operator that takes its place.

    gain: the root mean square of its results (without bias). norm: the Euclidean norm of its
    weight; None where there is no layer. elements: of that weight.
    """

    gain: float = 1.0
    norm: float | None = None
    elements: int = 0


def reference_of(layer: nn.Module, out: Sequence[int]) -> Reference:
    """The gain and norm of a convolution of stride 1 or a transposed one, or of a linear layer.

    out: the shape of its results without the batch, [C_out, H, W] or [..., H_out].
    Zeros around a map count as zeros: a border of 1 takes 8 % from a 3 x 3 convolution at 16 x 16.
    A layer without a weight, or whose weights are all 0, says nothing: `Reference()`.
    """
    weight = getattr(layer, "weight", None)
    if not isinstance(weight, torch.Tensor) or not weight.is_floating_point():
        return Reference()
    square = weight.detach().double().square().mean().item()
    if not 0.0 < square < math.inf:
        return Reference()
    terms = float(weight[0].numel())
    if isinstance(layer, nn.modules.conv._ConvNd) and layer.transposed:
        terms = layer.in_channels / layer.groups * _terms_of_transposed(layer, out[1:])
    elif isinstance(layer, nn.modules.conv._ConvNd):
        if layer.padding_mode == "zeros" and not isinstance(layer.padding, str):
            sides = zip(out[1:], layer.kernel_size, layer.dilation, layer.padding, strict=True)
            terms *= math.prod(_inside(int(size), *window) for size, *window in sides)
    elif not isinstance(layer, nn.Linear):
        terms = float(weight.shape[0])  # transformers' Conv1D: [H_in, H_out]
    norm = math.sqrt(square * weight.numel())
    return Reference(math.sqrt(square * terms), norm, weight.numel())


def _terms_of_transposed(layer: nn.modules.conv._ConvNd, out: Sequence[int]) -> float:
    """The mean number of taps that reach a result of a transposed convolution."""
    sides = zip(
        out,
        layer.kernel_size,
        layer.stride,
        layer.dilation,
        layer.padding,
        layer.output_padding,
        strict=True,
    )
    terms = 1.0
    for size, window, stride, dilation, padding, more in sides:
        assert isinstance(padding, int)
        inside = (int(size) - 1 - more + 2 * padding - dilation * (window - 1)) // stride + 1
        places = [at * stride + tap * dilation for at in range(inside) for tap in range(window)]
        terms *= sum(padding <= place < padding + int(size) for place in places) / int(size)
    return terms


def _inside(size: int, window: int, dilation: int, padding: int) -> float:
    """The share of a window's taps that lie inside of a map, over all its positions."""
    starts = [tap * dilation - padding for tap in range(window)]
    return sum(max(0, size - abs(start)) for start in starts) / (size * window)


def scale_weights(
    kernel: nn.Module,
    operator: OperatorValue,
    binding: Mapping[str, int],
    fan_in: Sequence[int],
    reference: Reference,
) -> None:
    """Scales fresh weights, of variances 1 / fan_in, for the gain of the reference.

    With a layer to compare with, `kernel.lr_multipliers` gets a factor for each weight; see
    `syno.train.optimizers`. An operator without weights, or all of whose terms are masked, stays
    as it is.
    """
    weights = dict(kernel.named_parameters())
    if not weights:
        return
    sizes = tuple(sorted(operator.complete(binding).items()))
    square = _mean_square(operator.text, sizes) / math.prod(fan_in)
    if square == 0.0:
        return
    factor = (reference.gain**2 / square) ** (0.5 / len(weights))
    with torch.no_grad():
        for weight in weights.values():
            weight.mul_(factor)
    if reference.norm is not None:
        before = reference.norm**2 / reference.elements
        kernel.lr_multipliers = {  # type: ignore[assignment]
            name: _within(
                factor**2
                / terms
                / before
                / len(weights)
                * math.sqrt(weight.numel() / reference.elements)
            )
            for (name, weight), terms in zip(weights.items(), fan_in, strict=True)
        }


def _within(scale: float) -> float:
    return min(max(scale, 1 / _MOST), _MOST)


# By text: what is cached must not keep objects of the extension until the very end.
@functools.lru_cache(maxsize=4096)
def _mean_square(text: str, binding: tuple[tuple[str, int], ...]) -> float:
    return float(OperatorValue.from_text(text).mean_square(dict(binding)))
