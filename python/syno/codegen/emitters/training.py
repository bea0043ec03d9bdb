"""C++ for training: the operator and its gradients, compiled for this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from syno import _core
from syno.codegen.emitters.protocol import Array, Case, Code
from syno.codegen.native import QUICK_FLAGS, no_compiler
from syno.codegen.native.training import TrainingKernel, compile_trainings, on_arrays

_NAME = "syno_operator"


class TrainingEmitter:
    """Translation units as `emit_training` writes them; all cases of a build in one.

    options: of `emit_training`, such as `images`.
    """

    name = "training"
    dtypes = ("float32",)
    has_gradients = True
    any_batch = True
    any_size = False

    def __init__(self, **options: int) -> None:
        self._options = options

    def available(self) -> str | None:
        """Not without a compiler."""
        return no_compiler()

    def source(self, case: Case) -> str:
        """The translation unit without the part that is the same in all of them."""
        return self._emit(case)[0]

    def build(self, cases: Sequence[Case], sources: Sequence[str] | None = None) -> Sequence[Code]:
        """Functions for all cases from one translation unit."""
        emitted = [self._emit(case) for case in cases]
        texts = [text for text, _ in emitted] if sources is None else sources
        named = []
        for number, (text, (_, manifest)) in enumerate(zip(texts, emitted, strict=True)):
            name = f"{_NAME}_{number}"
            named.append((name, text.replace(_NAME, name), json.loads(manifest)))
        return [_Checked(kernel) for kernel in compile_trainings(named, flags=QUICK_FLAGS)]

    def _emit(self, case: Case) -> tuple[str, str]:
        plan = case.operator.plans(case.binding, 1)[0]
        return _core.emit_training(
            plan,
            name=_NAME,
            formula=case.operator.formula(),
            with_runtime=False,
            **self._options,
        )


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
