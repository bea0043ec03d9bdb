"""Whole networks at inference: `compile` into an nn.Module, or C++ that `load` runs."""

from syno.inference.compiled_network import CompiledNetwork, compile
from syno.inference.library.load import NetworkLibrary, load

__all__ = ["CompiledNetwork", "NetworkLibrary", "compile", "load"]
