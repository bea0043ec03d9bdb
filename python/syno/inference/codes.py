"""Tensors whose elements are codes of 8 bits, and layers that multiply them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import fx
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from syno._util.errors import UserError

LEAST_CODE, MOST_CODE = 0, 255
# 1 / scale is a number of float32, too.
_LEAST_SCALE = 2.0**-100
# Codes of a word of 32 bits, which one instruction multiplies.
WORD = 4
# Of weights: as many below zero as above it.
MOST_WEIGHT = 127


@dataclass(frozen=True)
class Codes:
    """Codes from 0 to 255. The number that a code stands for is (code - zero) * scale."""

    scale: float
    zero: int

    @classmethod
    def between(cls, least: float, most: float) -> Codes:
        """The finest codes for numbers from `least` to `most`, and 0, which has a code."""
        least, most = min(least, 0.0), max(most, 0.0)
        # A tensor that is always zero may have any scale.
        scale = float(np.float32((most - least) / MOST_CODE)) or 1.0
        scale = max(scale, _LEAST_SCALE)
        return cls(scale, min(max(round(-least / scale), LEAST_CODE), MOST_CODE))

    @property
    def factor(self) -> float:
        """1 / scale, in float32."""
        return float(np.float32(1) / np.float32(self.scale))

    def rounded(self, x: torch.Tensor) -> torch.Tensor:
        """The numbers of the nearest codes, ties to even."""
        return torch.fake_quantize_per_tensor_affine(
            x, self.scale, self.zero, LEAST_CODE, MOST_CODE
        )


# The operator of torch that `Codes.rounded` calls.
ROUND = torch.ops.aten.fake_quantize_per_tensor_affine.default


def codes_of(node: fx.Node) -> tuple[fx.Node, Codes]:
    """What a call of `ROUND` rounds, and to which codes. UserError for other than 8 bits."""
    source, scale, zero, least, most = node.args
    if (least, most) != (LEAST_CODE, MOST_CODE) or not isinstance(source, fx.Node):
        raise UserError(
            f"the network library has no code for numbers that are rounded to {least} to {most}\n"
            f"  expected: {LEAST_CODE} to {MOST_CODE}"
        )
    return source, Codes(float(scale), int(zero))  # type: ignore[arg-type]


@dataclass(frozen=True)
class LayerCodes:
    """How a layer multiplies integers.

    x: of what it reads; values: of what each contraction but the last gives to the next, in order;
    units: of each of these, what an integer that the contraction adds up stands for; weights: from
    -127 to 127, in the shapes of the layer's, which are products of these and their scale; scales:
    of each weight, [] or one for each channel of the result.
    """

    x: Codes
    values: tuple[Codes, ...]
    units: tuple[float, ...]
    weights: tuple[torch.Tensor, ...]
    scales: tuple[torch.Tensor, ...]

    def channel(
        self,
        channels: int,
        scale: torch.Tensor | None,
        bias: torch.Tensor | None,
        residual: Codes | None,
        y: Codes | None,
    ) -> torch.Tensor:
        """What the kernel has in `channel` (emit/cpp/cpp.h).

        scale, bias: of the layer's epilogue [channels]; residual, y: where these are codes.
        """
        factors = torch.full([channels], self.x.scale, dtype=torch.float64)
        for each in self.scales:
            factors = factors * each.double()
        if scale is not None:
            factors = factors * scale.double()
        added = torch.zeros(channels) if bias is None else bias
        numbers = [self.x.zero, *(_pair(residual, "scale")), *(_pair(y, "factor"))]
        for value, unit in zip(self.values, self.units, strict=True):
            numbers += [value.zero, value.scale / unit, unit / value.scale]
        return torch.cat([added.float(), factors.float(), torch.tensor(numbers)])


def _pair(codes: Codes | None, name: str) -> tuple[float, float]:
    return (0.0, 1.0) if codes is None else (float(codes.zero), getattr(codes, name))


def inside(rank: int, channel: int) -> tuple[int, ...]:
    """The order in memory in which the channels of a map lie side by side."""
    return (*(d for d in range(rank) if d != channel), channel)


_CONTRACTIONS = (functional.conv1d, functional.conv2d, functional.conv3d, torch.einsum)
Visit = Callable[[int, torch.Tensor], torch.Tensor]


class Contractions(TorchFunctionMode):
    """Within it, the result of each contraction of an emitted module is that of a function of its
    number and its result."""

    def __init__(self, visit: Visit) -> None:
        super().__init__()
        self.visit = visit
        self.count = 0

    @classmethod
    def rounding(cls, values: Sequence[Codes]) -> Contractions:
        """Rounds what each contraction but the last gives to the next."""
        return cls(lambda number, y: values[number].rounded(y) if number < len(values) else y)

    def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = function(*args, **(kwargs or {}))
        if function in _CONTRACTIONS:
            result = self.visit(self.count, result)
            self.count += 1
        return result
