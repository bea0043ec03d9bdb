"""The machine that a time was taken on: device, clocks, threads and versions."""

from __future__ import annotations

import contextlib
import importlib.metadata
from dataclasses import asdict

import torch

from syno._util.cpu_info import cpu_info
from syno._util.json_types import JsonObject
from syno.codegen.native import no_compiler
from syno.codegen.native.compiler import find_compiler
from syno.store.environment import capture_environment

_CLOCK = "cpu MHz"
# Packages of back ends and engines whose versions a result names.
_PACKAGES = ("apache-tvm", "triton", "xgboost-cpu", "onnxruntime", "openvino")


def described_machine(threads: int, device: str = "cpu") -> JsonObject:
    """The device ("cpu" or "cuda"), its clock, threads and versions."""
    found: JsonObject = asdict(capture_environment(threads=threads, rules=""))
    found.pop("rules")
    libraries = dict(found["libraries"])  # type: ignore[arg-type, call-overload]
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            libraries[name] = importlib.metadata.version(name)
    found["libraries"] = libraries
    if device == "cuda" and torch.cuda.is_available():
        found["device"] = torch.cuda.get_device_name()
    if no_compiler() is None:
        found["compiler"] = find_compiler().version
    found["clocks_mhz"] = _clocks()
    return found


def _clocks() -> list[float]:
    """The clock of each core as the system states it now; empty where it does not."""
    return [float(value) for value in cpu_info(_CLOCK)]
