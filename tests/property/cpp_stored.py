"""Compiled operators whose arrays are stored in float32, bfloat16 or codes of 8 bits."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from syno import Operator, _core
from syno.codegen import native
from syno.codegen.native import function as native_function

Array = NDArray[np.float32]


def to_bfloat16(values: Array) -> NDArray[np.uint16]:
    """The upper halves of float32 numbers, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def of_bfloat16(halves: NDArray[np.uint16]) -> Array:
    return (halves.astype(np.uint32) << 16).view(np.float32)


class Stored:
    """An operator of a library, which was emitted with these options of `emit_cpp`."""

    def __init__(
        self, library: ctypes.CDLL, name: str, options: Mapping[str, Any], source: str = ""
    ) -> None:
        self.library = library
        self.source = source
        self.options = options
        self.run = getattr(library, f"{name}_run")
        self.phase = getattr(library, f"{name}_phase")
        self.phases = getattr(library, f"{name}_phase_count")()
        self.pack = getattr(library, f"{name}_pack")
        self.packed_size = getattr(library, f"{name}_packed_size")
        self.workspace_size = getattr(library, f"{name}_workspace_size")
        self.packed_size.restype = self.workspace_size.restype = ctypes.c_long
        # In int8 there are arguments of an epilogue, even without one.
        self.has_ends = bool(options.get("epilogue")) or options.get("precision") == "int8"

    @property
    def orders(self) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
        return self.options.get("input_order"), self.options.get("output_order")

    def packed(self, weights: Sequence[Array]) -> Array:
        held = [np.ascontiguousarray(weight, np.float32) for weight in weights]
        packed = native_function._aligned(self.packed_size())
        self.pack((ctypes.c_void_p * max(1, len(held)))(*[w.ctypes.data for w in held]), at(packed))
        return packed

    def __call__(
        self,
        x: NDArray,
        weights: Sequence[Array],
        y: NDArray,
        threads: int,
        channel: Array,
        residual: NDArray | None = None,
    ) -> None:
        packed, workspace = self.packed(weights), self._workspace(threads)
        ends = (at(channel), at(residual)) if self.has_ends else ()
        size = (ctypes.c_long(len(x)), ctypes.c_int(threads))
        self.run(at(x), at(packed), *ends, at(y), at(workspace), *size)

    def by_phases(
        self,
        x: NDArray,
        weights: Sequence[Array],
        y: NDArray,
        parts: int,
        channel: Array,
        residual: NDArray | None = None,
    ) -> None:
        """The same for one image: all parts of a phase, the last one first."""
        packed, workspace = self.packed(weights), self._workspace(parts)
        ends = (at(channel), at(residual))
        for number in range(self.phases):
            for part in reversed(range(parts)):
                arguments = (number, at(x), at(packed), *ends, at(y), at(workspace))
                self.phase(*arguments, ctypes.c_long(part), ctypes.c_long(parts))

    def _workspace(self, threads: int) -> Array:
        workspace = native_function._aligned(self.workspace_size(threads))
        workspace.fill(np.nan)
        return workspace


def stored_functions(
    operator: Operator,
    binding: dict[str, int],
    flags: Sequence[str],
    options: Sequence[Mapping[str, Any]],
) -> list[Stored]:
    """The operator with each of the options, from one translation unit."""
    plan = operator.plans(binding, 1)[0]
    sources = [
        _core.emit_cpp(plan, name=f"op{number}", with_runtime=False, **each)[0]
        for number, each in enumerate(options)
    ]
    library = native.find_compiler().library("\n".join([_core.cpp_runtime(), *sources]), flags)
    return [
        Stored(library, f"op{number}", each, source)
        for number, (each, source) in enumerate(zip(options, sources, strict=True))
    ]


def at(array: NDArray | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if array is None else array.ctypes.data)
