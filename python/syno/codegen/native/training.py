"""Compiled operators with their gradients, for training on CPUs in float32."""

from __future__ import annotations

import collections
import ctypes
import json
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syno import _core
from syno.codegen.native.compiler import TRAINING_FLAGS, Compiler, find_compiler
from syno.codegen.native.function import Manifest, _aligned
from syno.operators.operator import Operator
from syno.operators.specification import Binding

_MOST_IDLE = 4
_Pointers = ctypes.Array[ctypes.c_void_p]
_Room = tuple[ctypes.c_void_p, NDArray[np.float32]]


class TrainingFunction:
    """An operator under one binding and its gradients as compiled code, called with addresses.

    All memory is float32 in C order. `weights` and `dweights` are one address for each weight.
    Any number of Python threads may call it at the same time.

    source: the compiled source; input_shape, output_shape: dimension 0 has any size if `batched`.
    """

    def __init__(self, library: ctypes.CDLL, name: str, source: str, manifest: Manifest) -> None:
        self.source = source
        self.input_shape = tuple(dim["extent"] for dim in manifest["input"])
        self.output_shape = tuple(dim["extent"] for dim in manifest["output"])
        self.weight_shapes = [tuple(weight["shape"]) for weight in manifest["weights"]]
        self.batched = any(dim["free"] for dim in manifest["input"])
        self._library = library  # keeps it loaded
        self._run = getattr(library, f"{name}_run")
        self._gradients = getattr(library, f"{name}_gradients")
        self._rooms = []
        for function in ("run", "gradients"):
            size = getattr(library, f"{name}_{function}_workspace")
            size.restype = ctypes.c_long
            self._rooms.append(size(1))
        self._run.restype = self._gradients.restype = None
        self._idle: collections.deque[_Room] = collections.deque(maxlen=_MOST_IDLE)

    def run(self, x: int, weights: Sequence[int], y: int, batch: int, threads: int = 1) -> None:
        """Compute y."""
        room = self._room()
        self._run(
            ctypes.c_void_p(x),
            _pointers(weights),
            ctypes.c_void_p(y),
            room[0],
            ctypes.c_long(batch),
            ctypes.c_int(threads),
        )
        self._idle.append(room)

    def gradients(
        self,
        x: int,
        weights: Sequence[int],
        dy: int,
        dx: int,
        dweights: Sequence[int],
        batch: int,
        threads: int = 1,
    ) -> None:
        """Compute the gradients of sum(dy * y) for x and for each weight.

        dx: 0 where nobody wants it.
        """
        room = self._room()
        self._gradients(
            ctypes.c_void_p(x),
            _pointers(weights),
            ctypes.c_void_p(dy),
            ctypes.c_void_p(dx),
            _pointers(dweights),
            room[0],
            ctypes.c_long(batch),
            ctypes.c_int(threads),
        )
        self._idle.append(room)

    def _room(self) -> _Room:
        """A workspace with its address, for both functions."""
        try:
            return self._idle.pop()
        except IndexError:
            memory = _aligned(max(self._rooms))
            return ctypes.c_void_p(memory.ctypes.data), memory


def compile_training(
    operator: Operator,
    binding: Binding | str,
    *,
    compiler: Compiler | None = None,
    flags: Sequence[str] = TRAINING_FLAGS,
    plan: int = 1,
    images: int = 0,
) -> TrainingFunction:
    """Compile an operator and its gradients under a binding, or load them from the cache.

    Args:
        operator: the operator.
        binding: values of its variables.
        plan: the number of the plan in `Operator.plans`; 1 is the cheapest.
        images: elements of the batch that are processed together; 0 chooses.

    Raises:
        UserError: the operator does not fit the binding, the plan does not exist, or there is no
            compiler.
    """
    chosen = operator.numbered_plan(binding, plan, fold_weights=False)
    source, manifest = _core.emit_training(chosen, formula=operator.formula(), images=images)
    library = (compiler or find_compiler()).library(source, flags)
    return TrainingFunction(library, "syno_operator", source, json.loads(manifest))


def compile_trainings(
    sources: Sequence[tuple[str, str, Manifest]],
    *,
    compiler: Compiler | None = None,
    flags: Sequence[str] = TRAINING_FLAGS,
) -> list[TrainingFunction]:
    """Many operators in one translation unit.

    sources: of each its name, its source without the runtime, and its manifest.
    """
    text = "\n".join([_core.training_runtime(), *(source for _, source, _ in sources)])
    library = (compiler or find_compiler()).library(text, flags)
    return [TrainingFunction(library, *parts) for parts in sources]


def on_arrays(
    function: TrainingFunction,
    x: NDArray[np.float32],
    weights: Sequence[NDArray[np.float32]],
    dy: NDArray[np.float32] | None = None,
    threads: int = 1,
) -> tuple[NDArray[np.float32], list[NDArray[np.float32]]]:
    """The value (dy is None), or the gradients for x and each weight, of arrays in C order."""
    batch = x.shape[0] if function.batched else 1
    weights_at = [weight.ctypes.data for weight in weights]
    if dy is None:
        shape = (batch, *function.output_shape[1:]) if function.batched else function.output_shape
        y = np.full(shape, math.nan, np.float32)
        function.run(x.ctypes.data, weights_at, y.ctypes.data, batch, threads)
        return y, []
    dx = np.full_like(x, math.nan)
    dweights = [np.full_like(weight, math.nan) for weight in weights]
    function.gradients(
        x.ctypes.data,
        weights_at,
        dy.ctypes.data,
        dx.ctypes.data,
        [dweight.ctypes.data for dweight in dweights],
        batch,
        threads,
    )
    return dx, dweights


def _pointers(addresses: Sequence[int]) -> _Pointers:
    return (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
