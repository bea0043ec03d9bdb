"""C++ for training: the operator and its gradients, compiled for this machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syno import _core
from syno.codegen.emitters.cpp import CppEmitter
from syno.codegen.emitters.protocol import Array, Code
from syno.codegen.native import QUICK_FLAGS
from syno.codegen.native.function import Manifest
from syno.codegen.native.training import TrainingKernel, compile_trainings, on_arrays


class TrainingEmitter(CppEmitter):
    """Translation units as `emit_training` writes them; options: its own, such as `images`."""

    name = "training"
    has_gradients = True
    _emit_plan = staticmethod(_core.emit_training)

    def _compiled(self, named: Sequence[tuple[str, str, Manifest]]) -> Sequence[Code]:
        return [_Checked(kernel) for kernel in compile_trainings(named, flags=QUICK_FLAGS)]


class _Checked:
    """A kernel whose results on one thread and on two are compared."""

    def __init__(self, kernel: TrainingKernel) -> None:
        self._kernel = kernel

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        return self._results(x, weights, None)[0]

    def gradients(
        self, x: Array, weights: Sequence[Array], dy: Array
    ) -> tuple[Array, Sequence[Array]]:
        """The gradients of sum(dy * y) for x and for each weight."""
        dx, *dweights = self._results(x, weights, dy)
        return dx, dweights

    def _results(
        self, x: Array, weights: Sequence[Array], dy: Array | None
    ) -> list[NDArray[np.float32]]:
        floats = [_floats(array) for array in (x, *weights)]
        results = []
        for threads in (1, 2):
            first, rest = on_arrays(
                self._kernel,
                floats[0],
                floats[1:],
                None if dy is None else _floats(dy),
                threads,
            )
            results.append([first, *rest])
        for one, two in zip(*results, strict=True):
            if not np.array_equal(one, two):
                raise ValueError("two threads give another result than one")
        return results[0]


def _floats(array: Array) -> NDArray[np.float32]:
    return np.asarray(array, np.float32, order="C")


EMITTER = TrainingEmitter()
