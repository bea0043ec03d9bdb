"""Compiled operators as functions on numpy arrays."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from syno import _core
from syno._errors import UserError
from syno.native.compiler import FLAGS, Compiler, find_compiler
from syno.operator import Operator
from syno.spec import Binding

_Floats = ctypes.POINTER(ctypes.c_float)
_LINE = 64  # bytes of a cache line


class NativeFunction:
    """An operator under one binding as compiled code, float32.

    `pack` brings the weights into the order in which the kernels read them, once for many calls:

        function = syno.native.compile_operator(operator, binding)
        function.pack(weights)
        y = function(x)

    source: what was compiled; input_shape, output_shape: dimension 0 takes any size when `batched`.
    """

    def __init__(
        self, library: ctypes.CDLL, name: str, source: str, manifest: dict[str, Any]
    ) -> None:
        self.source = source
        self.input_shape = tuple(dim["extent"] for dim in manifest["input"])
        self.output_shape = tuple(dim["extent"] for dim in manifest["output"])
        self.weight_shapes = [tuple(weight["shape"]) for weight in manifest["weights"]]
        self.batched = any(dim["free"] for dim in manifest["input"])
        self._library = library  # keeps it loaded
        self._run = getattr(library, f"{name}_run")
        self._run.argtypes = [_Floats] * 4 + [ctypes.c_long, ctypes.c_int]
        self._run.restype = None
        self._pack = getattr(library, f"{name}_pack")
        self._pack.argtypes = [ctypes.POINTER(_Floats), _Floats]
        self._pack.restype = None
        size = getattr(library, f"{name}_packed_size")
        size.restype = ctypes.c_long
        self._packed = _aligned(size())
        self._workspace_size = getattr(library, f"{name}_workspace_size")
        self._workspace_size.argtypes = [ctypes.c_int]
        self._workspace_size.restype = ctypes.c_long
        self._workspaces: dict[int, NDArray[np.float32]] = {}
        self._ready = not self.weight_shapes

    def pack(self, weights: Sequence[ArrayLike]) -> None:
        """Sets the weights: arrays of `weight_shapes`, in that order."""
        arrays = [np.ascontiguousarray(weight, dtype=np.float32) for weight in weights]
        given = [array.shape for array in arrays]
        if given != self.weight_shapes:
            raise UserError(
                f"weights of the wrong shapes\n  expected: {self.weight_shapes}      got: {given}"
            )
        pointers = (_Floats * max(1, len(arrays)))(*map(_pointer, arrays))
        self._pack(pointers, _pointer(self._packed))
        self._ready = True

    def __call__(self, x: ArrayLike, threads: int = 1) -> NDArray[np.float32]:
        """y for x of the input's shape; with any number of images where it is batched."""
        data = np.ascontiguousarray(x, dtype=np.float32)
        batch = self._batch(data.shape)
        shape = (batch, *self.output_shape[1:]) if self.batched else self.output_shape
        y = np.empty(shape, np.float32)
        self.run_into(data, y, threads)
        return y

    def run_into(self, x: NDArray[np.float32], y: NDArray[np.float32], threads: int = 1) -> None:
        """The same into an array that is there: what is timed.

        Both are C-contiguous float32 of the right shapes.
        """
        self.prepared(x, y, threads)()

    def prepared(
        self, x: NDArray[np.float32], y: NDArray[np.float32], threads: int = 1
    ) -> Callable[[], None]:
        """`run_into` with everything looked up, to be called many times while both arrays live."""
        if not self._ready:
            raise UserError("the function has no weights yet\n  hint: function.pack(weights)")
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise UserError(f"'threads' is a positive integer, got {threads!r}")
        batch = self._batch(x.shape)
        workspace = self._workspaces.get(threads)
        if workspace is None:
            workspace = self._workspaces[threads] = _aligned(self._workspace_size(threads))
        run = self._run
        arguments = (
            _pointer(x),
            _pointer(self._packed),
            _pointer(y),
            _pointer(workspace),
            ctypes.c_long(batch),
            ctypes.c_int(threads),
        )
        return lambda: run(*arguments)

    def _batch(self, shape: tuple[int, ...]) -> int:
        if self.batched and shape[1:] == self.input_shape[1:] and len(shape) > 0:
            return shape[0]
        if shape != self.input_shape:
            expected = ["n", *self.input_shape[1:]] if self.batched else list(self.input_shape)
            raise UserError(f"x of the wrong shape\n  expected: {expected}      got: {list(shape)}")
        return 1


def compile_operator(
    operator: Operator,
    binding: Binding | str,
    *,
    compiler: Compiler | None = None,
    flags: Sequence[str] = FLAGS,
    plan: int = 1,
    fold_weights: bool = False,
) -> NativeFunction:
    """Compiles an operator under a binding; from the cache when that was done before.

    plan: its number in `Operator.plans`, from 1, the cheapest; `syno.measure.choose_plan` finds the
    fastest. fold_weights: weights may be multiplied with each other in `pack`, where that takes
    fewer multiply-adds. UserError where the operator does not fit the binding, there is no such
    plan, or no compiler.
    """
    chosen = operator.numbered_plan(binding, plan, fold_weights=fold_weights)
    source, manifest = _core.emit_cpp(chosen, formula=operator.formula())
    library = (compiler or find_compiler()).library(source, flags)
    return NativeFunction(library, "syno_operator", source, json.loads(manifest))


def compile_functions(
    sources: Sequence[tuple[str, str, dict[str, Any]]],
    *,
    compiler: Compiler | None = None,
    flags: Sequence[str] = FLAGS,
) -> list[NativeFunction]:
    """Many operators in one translation unit.

    sources: of each its name, its source without the runtime, and its manifest.
    """
    text = "\n".join([_core.cpp_runtime(), *(source for _, source, _ in sources)])
    library = (compiler or find_compiler()).library(text, flags)
    return [NativeFunction(library, *parts) for parts in sources]


def _pointer(array: NDArray[np.float32]) -> Any:
    return array.ctypes.data_as(_Floats)


def _aligned(count: int) -> NDArray[np.float32]:
    """Zeros that begin at a cache line."""
    room = np.zeros(count + _LINE // 4, np.float32)
    skip = (-room.ctypes.data % _LINE) // 4
    return room[skip : skip + count]
