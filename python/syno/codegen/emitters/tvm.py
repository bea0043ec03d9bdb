"""TVM: tensor expressions compiled for LLVM, on the CPU. Needs the extra `tvm`.

They are compiled and run in a process of their own: TVM takes over a process's handling of
segmentation faults, and one in its compiler or in its code would end this process without a word.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
from collections.abc import Sequence
from types import ModuleType

from syno import _core
from syno.codegen.emitters.code_process import CodeProcess
from syno.codegen.emitters.protocol import Case, Code, Emitter

# A file, the shapes of x, the weights and y, and whether the operator has a batch.
Source = tuple[str, list[tuple[int, ...]], bool]

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
            built += _PROCESS.load([*map(_source, cases[part], texts[part])])
        return built


def _source(case: Case, text: str) -> Source:
    shapes = case.operator.shapes(case.binding)
    tensors = [tuple(shape) for shape in (shapes.input, *shapes.weights, shapes.output)]
    return text, tensors, case.operator.batch is not None


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


_PROCESS = CodeProcess("TVM", "syno.codegen.emitters.tvm_worker")
EMITTER = TvmEmitter()
