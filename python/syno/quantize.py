"""`syno.quantize` as a module, for code that imports the function by its earlier name.

    from syno.quantize import quantize
    net = quantize(trained, batches).net

The module is also the function, since importing it sets the attribute `quantize` of `syno`.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import nn

from syno._util.inputs import Inputs
from syno.inference.quantization.network import QuantizedNetwork
from syno.inference.quantization.quantize import quantize as _quantize

__all__ = ["Quantized", "quantize"]


@dataclass(frozen=True)
class Quantized:
    """A network in INT8, with the number of images that its ranges are from."""

    net: QuantizedNetwork
    images: int


def quantize(net: nn.Module, calibration: Iterable[Inputs]) -> Quantized:
    """`syno.quantize` with its result as a field of another one, as it was once."""
    made = _quantize(net, calibration)
    return Quantized(made, made.images)


class _Function(types.ModuleType):
    """A module that can be called as `syno.quantize`."""

    def __call__(self, *args: Any, **kwargs: Any) -> QuantizedNetwork:
        return _quantize(*args, **kwargs)


sys.modules[__name__].__class__ = _Function
