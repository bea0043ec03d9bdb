"""`syno.quantize` as a module, for code that imports the conversion in PyTorch by that name.

The module is also the function, since importing it sets the attribute `quantize` of `syno`.
"""

from __future__ import annotations

import sys
import types
from typing import Any

from syno.inference.quantization.network import QuantizedNetwork
from syno.inference.quantization.quantize import quantize as _quantize
from syno.torch_int8 import Quantized, checked_engine, engines, quantize

__all__ = ["Quantized", "checked_engine", "engines", "quantize"]


class _Function(types.ModuleType):
    """A module that can be called as `syno.quantize`."""

    def __call__(self, *args: Any, **kwargs: Any) -> QuantizedNetwork:
        return _quantize(*args, **kwargs)


sys.modules[__name__].__class__ = _Function
