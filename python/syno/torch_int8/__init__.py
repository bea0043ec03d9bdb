"""Trained networks in INT8: post-training quantization, operators included. Needs torch."""

from syno.torch_int8.network import Quantized, checked_engine, engines, quantize

__all__ = ["Quantized", "checked_engine", "engines", "quantize"]
