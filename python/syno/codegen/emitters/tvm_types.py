"""What Syno uses of TVM's objects. TVM has no types of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, SupportsInt, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.number]
# Schedules, trials, their database, and what converts graphs: TVM makes them, and Syno keeps none.
Foreign: TypeAlias = Any


class TensorParameter(Protocol):
    """A parameter of a function."""

    shape: Sequence[SupportsInt]


class PrimFunc(Protocol):
    """A function of TensorIR."""

    params: Sequence[TensorParameter]
    attrs: Mapping[str, object] | None

    def with_attr(self, name: str, value: object) -> PrimFunc:
        """A copy with an attribute."""

    def without_attr(self, name: str) -> PrimFunc:
        """A copy without an attribute."""


class Module(Protocol):
    """An `IRModule`: functions of TensorIR and of Relax."""

    def functions_items(self) -> Sequence[tuple[object, object]]:
        """The functions with their global variables."""

    def update_func(self, variable: object, function: PrimFunc) -> None:
        """Put a function in the place of another."""

    def clone(self) -> Module:
        """A copy."""

    def __getitem__(self, name: str) -> PrimFunc: ...


class TargetKind(Protocol):
    """What a target is for, such as `llvm`."""

    name: object


class TvmTarget(AbstractContextManager[object], Protocol):
    """A target; within its context, passes are for it."""

    kind: TargetKind


class Executable(Protocol):
    """Compiled functions by name: of a module of TensorIR, or of Relax's virtual machine."""

    def __getitem__(self, name: str) -> Callable[..., object]: ...

    def export_library(self, path: str, *, fcompile: object) -> object:
        """Write a file."""


class Tensor(Protocol):
    """A tensor of TVM, which other libraries take by DLPack."""

    def numpy(self) -> Array:
        """A copy."""

    def __dlpack__(self, *, stream: int | None = None) -> object: ...


class Timed(Protocol):
    """What a timer of TVM returns: seconds."""

    results: Sequence[float]


class RemoteModule(Protocol):
    """Compiled functions on a device."""

    def __getitem__(self, name: str) -> Callable[..., object]: ...

    def time_evaluator(
        self, name: str, device: object, *, number: int, repeat: int, min_repeat_ms: int
    ) -> Callable[..., Timed]:
        """A timer of a function."""


class Session(Protocol):
    """A session on a device."""

    def cpu(self, number: int) -> object:
        """A processor there."""

    def device(self, kind: str, number: int) -> object:
        """A device of some kind there."""

    def upload(self, path: str, name: str) -> None:
        """Send a file."""

    def load_module(self, name: str) -> RemoteModule:
        """Load a file that was sent."""
