"""TVM: tensor expressions compiled for LLVM, on the CPU. Needs the extra `tvm`."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from syno import _core
from syno.emitters.protocol import Array, Case, Function, WrongCodeError

# Functions a module: LLVM takes longer than in proportion for very large ones.
_TOGETHER = 100


class Tvm:
    """Files with `prim_func`, as `_core.emit_tvm` writes them."""

    name = "tvm"
    dtypes = ("float32",)
    has_gradients = False
    any_batch = False

    def available(self) -> str | None:
        """None where the package tvm is installed."""
        if importlib.util.find_spec("tvm") is None:
            return "the package tvm is not installed\n  what to do: pip install 'syno[tvm]'"
        return None

    def source(self, case: Case) -> str:
        """The file's text."""
        text, _ = _core.emit_tvm(case.operator._plan(case.binding), case.operator.formula())
        return text

    def build(
        self, cases: Sequence[Case], sources: Sequence[str] | None = None
    ) -> Sequence[Function]:
        """One TVM module for many cases. WrongCodeError where shapes are not the operator's."""
        texts = [self.source(case) for case in cases] if sources is None else sources
        functions = [_prim_func(case, text) for case, text in zip(cases, texts, strict=True)]
        built: list[Function] = []
        for first in range(0, len(functions), _TOGETHER):
            built += _compiled(cases[first:], functions[first : first + _TOGETHER])
        return built


def _prim_func(case: Case, source: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(compile(source, "<emitted for tvm>", "exec"), namespace)
    function = namespace["prim_func"]()
    shapes = case.operator.shapes(case.binding)
    expected = [tuple(shape) for shape in (shapes.input, *shapes.weights, shapes.output)]
    found = [tuple(int(extent) for extent in buffer.shape) for buffer in function.params]
    if found != expected:
        raise WrongCodeError(f"the function takes tensors {found}, the operator {expected}")
    return function


def _compiled(cases: Sequence[Case], functions: Sequence[Any]) -> list[Function]:
    import tvm

    names = [f"f{number}" for number in range(len(functions))]
    named = zip(names, functions, strict=True)
    module = tvm.IRModule({name: f.with_attr("global_symbol", name) for name, f in named})
    executable = tvm.compile(module, target=tvm.target.Target({"kind": "llvm"}))
    return [
        _Compiled(executable[name], case.operator.shapes(case.binding).output)
        for name, case in zip(names, cases, strict=False)
    ]


class _Compiled:
    """A compiled function of x, the weights and y."""

    def __init__(self, function: Any, output: Sequence[int]) -> None:
        self._function = function
        self._output = tuple(output)

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        import tvm

        # What is not written shows.
        y = tvm.runtime.tensor(np.full(self._output, np.nan, np.float32))
        self._function(*(tvm.runtime.tensor(array) for array in (x, *weights)), y)
        result: Array = y.numpy()
        return result


EMITTER = Tvm()
