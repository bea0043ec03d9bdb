"""What an inference engine is, and all engines by name."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from syno._util.errors import UserError

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno._util.inputs import Inputs

# What a network returns: one tensor, or several.
Outputs: TypeAlias = "torch.Tensor | tuple[torch.Tensor, ...]"

FLOAT32 = "float32"
BFLOAT16 = "bfloat16"
DEFAULT_PRECISION = "default"
INT8 = "int8"
AUTO = "auto"  # of each layer its own

# Name of an engine: the module that has it in its ENGINES.
_MODULES = {
    "eager": "syno.engines.pytorch",
    "channels-last": "syno.engines.pytorch",
    "inductor": "syno.engines.pytorch",
    "onnxruntime": "syno.engines.onnx",
    "onnxruntime-int8": "syno.engines.onnx",
    "openvino": "syno.engines.onnx",
    "openvino-default": "syno.engines.onnx",
    "openvino-int8": "syno.engines.onnx",
    "tvm": "syno.engines.tvm",
    "syno": "syno.engines.own",
    "syno-cpp": "syno.engines.own",
    "syno-cpp-bf16": "syno.engines.own",
    "syno-cpp-int8": "syno.engines.own",
    "syno-cpp-auto": "syno.engines.own",
}
DEFAULT = ("eager", "inductor", "onnxruntime", "openvino", "syno", "syno-cpp")
# Float32 engines that are not part of Syno, with the names that pages and figures print: "the
# fastest other engine" is the fastest of these, and what lacks one says so.
RIVALS = {
    "eager": "eager PyTorch",
    "inductor": "TorchInductor",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
}


class Engine(Protocol):
    """One way to run a network. Engines are derived from it for its defaults.

    precision: number format of activations and weights; own: whether the engine is part of Syno.
    """

    name: str
    precision: str = FLOAT32
    own: bool = False

    def missing(self) -> str | None:
        """Return None, or why the engine is not available here and what to do."""
        return None

    def calibrated(self, samples: Sequence[Inputs]) -> Engine:
        """Return the engine with ranges of INT8 from batches of samples, instead of the example.

        Engines in other precisions need none.
        """
        return self

    def prepare(self, net: nn.Module, example: Inputs, threads: int) -> Callable[[], Outputs]:
        """Return a function that runs the network on the example and returns its outputs.

        Args:
            net: a network on the CPU in evaluation mode, in float32. It is not changed.
            example: the input of every call, a tuple for several of them. The sizes of the prepared
                network are fixed to it.
            threads: number of threads.

        Raises:
            UserError: the engine cannot run the network.
        """


@dataclass(frozen=True)
class Prepared:
    """A prepared network, and what its engine knows of it.

    run: runs the network; outside: runs it, and returns the share of the time that is not spent in
    kernels of layers, measured in that run. load_s: seconds in which a network that was compiled
    or written before is loaded; size: bytes of the files that are loaded then; on: runs it on
    other arguments of the example's shapes. None where an engine does not know it.
    """

    run: Callable[[], Outputs]
    outside: Callable[[], float] | None = None
    load_s: float | None = None
    size: int | None = None
    on: Callable[..., Outputs] | None = None

    def __call__(self) -> Outputs:
        """The outputs of the network."""
        return self.run()


def names() -> tuple[str, ...]:
    """Return the names of all engines."""
    return tuple(_MODULES)


def get(name: str) -> Engine:
    """Return the engine with a name.

    Raises:
        UserError: the name is unknown, or the engine is not available here.
    """
    if name not in _MODULES:
        raise UserError(f"there is no inference engine '{name}'\n  expected: {', '.join(_MODULES)}")
    found: Engine = importlib.import_module(_MODULES[name]).ENGINES[name]
    reason = found.missing()
    if reason is not None:
        raise UserError(f"the inference engine '{name}' is not available: {reason}")
    return found


def available(wanted: Sequence[str] = DEFAULT) -> tuple[str, ...]:
    """Return those of the named engines that are available here."""
    return tuple(
        name
        for name in wanted
        if importlib.import_module(_MODULES[name]).ENGINES[name].missing() is None
    )


def missing_rivals(measured: Iterable[str]) -> tuple[str, ...]:
    """Return those of RIVALS that are not among the names of engines."""
    there = set(measured)
    return tuple(name for name in RIVALS if name not in there)


def without(missing: Iterable[str]) -> str:
    """Return the engines of `missing_rivals` in words, empty if there is none."""
    named = ", ".join(RIVALS[name] for name in missing)
    return f"without {named}" if named else ""


def missing_packages(extra: str, *packages: str) -> str | None:
    """Return None, or which packages are missing and the extra of Syno that installs them."""
    absent = [each for each in packages if importlib.util.find_spec(each) is None]
    if not absent:
        return None
    return f"{', '.join(absent)} missing\n  what to do: pip install 'syno[{extra}]'"
