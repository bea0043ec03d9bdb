"""TVM: tensor expressions compiled for LLVM, on the CPU. Needs the extra `tvm`."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np

from syno import _core
from syno.codegen.emitters.protocol import Array, Case, Code, Emitter, WrongCodeError
from syno.codegen.emitters.tvm_types import Executable, PrimFunc

# Functions a module: LLVM takes longer than in proportion for very large ones.
_TOGETHER = 100


class TvmEmitter(Emitter):
    """Files with `prim_func`, as `_core.emit_tvm` writes them."""

    name = "tvm"

    def available(self) -> str | None:
        """None where the package tvm is installed."""
        if importlib.util.find_spec("tvm") is None:
            return "the package tvm is not installed\n  what to do: pip install 'syno[tvm]'"
        return None

    def source(self, case: Case) -> str:
        """The file's text."""
        text, _ = _core.emit_tvm(case.operator.numbered_plan(case.binding), case.operator.formula())
        return text

    def build(self, cases: Sequence[Case], sources: Sequence[str] | None = None) -> Sequence[Code]:
        """One TVM module for many cases. WrongCodeError where shapes are not the operator's."""
        texts = [self.source(case) for case in cases] if sources is None else sources
        built: list[Code] = []
        for first in range(0, len(cases), _TOGETHER):
            part = slice(first, first + _TOGETHER)
            built += _compiled(cases[part], texts[part])
        return built


def _compiled(cases: Sequence[Case], sources: Sequence[str]) -> list[Code]:
    """One module with the functions of all cases; of one with a batch, also that for any batch."""
    tvm = imported()
    from tvm import te

    functions: dict[str, PrimFunc] = {}
    for number, (case, source) in enumerate(zip(cases, sources, strict=True)):
        namespace: dict[str, Callable[..., PrimFunc]] = {}
        exec(compile(source, "<emitted for tvm>", "exec"), namespace)
        prim_func = namespace["prim_func"]
        functions[f"f{number}"] = _checked(case, prim_func())
        if case.operator.batch is not None:
            functions[f"any{number}"] = prim_func(batch=te.var("batch", "int32"))
    named = {name: f.with_attr("global_symbol", name) for name, f in functions.items()}
    executable = tvm.compile(tvm.IRModule(named), target=tvm.target.Target({"kind": "llvm"}))
    return [_Compiled(case, executable, number) for number, case in enumerate(cases)]


@functools.cache
def imported() -> ModuleType:
    """Import the package without garbage collections, and let it bind no thread to a core.

    It iterates over `sys.modules` while it loads. A collection may run any code, and if that code
    imports a module, TVM fails and stays half loaded.

    The thread that first calls a parallel function would be bound to one core with TVM's own
    threads, and so would all threads and processes that it starts afterwards.
    """
    os.environ.setdefault("TVM_BIND_THREADS", "0")
    collects = gc.isenabled()
    gc.disable()
    try:
        import tvm
    finally:
        if collects:
            gc.enable()
    return tvm


def _checked(case: Case, function: PrimFunc) -> PrimFunc:
    shapes = case.operator.shapes(case.binding)
    expected = [tuple(shape) for shape in (shapes.input, *shapes.weights, shapes.output)]
    found = [tuple(int(extent) for extent in buffer.shape) for buffer in function.params]
    if found != expected:
        raise WrongCodeError(f"the function takes tensors {found}, the operator {expected}")
    return function


class _Compiled:
    """Compiled functions of x, the weights and y: for the case's batch, and for others."""

    def __init__(self, case: Case, executable: Executable, number: int) -> None:
        self._output = case.operator.shapes(case.binding).output
        self._own = executable[f"f{number}"]
        batched = case.operator.batch is not None
        self._any = executable[f"any{number}"] if batched else None

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        tvm = imported()
        output, function = tuple(self._output), self._own
        if self._any is not None and len(x) != output[0]:
            output, function = (len(x), *output[1:]), self._any
        # What is not written shows.
        y = tvm.runtime.tensor(np.full(output, np.nan, np.float32))
        function(*(tvm.runtime.tensor(array) for array in (x, *weights)), y)
        result: Array = y.numpy()
        return result


EMITTER = TvmEmitter()
