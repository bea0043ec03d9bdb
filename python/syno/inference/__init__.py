"""Whole networks at inference: `compile` into an nn.Module, C++ that `load` runs, `quantize`."""

from syno.inference.compiled_network import CompiledNetwork
from syno.inference.compiling import compile
from syno.inference.library.load import NetworkLibrary, load
from syno.inference.quantization.network import QuantizedNetwork
from syno.inference.quantization.quantize import quantize
from syno.inference.resizable import ResizableNetwork
from syno.inference.shipping.ship import Shipped, ship_network

__all__ = [
    "CompiledNetwork",
    "NetworkLibrary",
    "QuantizedNetwork",
    "ResizableNetwork",
    "Shipped",
    "compile",
    "load",
    "quantize",
    "ship_network",
]
