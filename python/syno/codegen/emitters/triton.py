"""Triton: kernels on a GPU, or by Triton's interpreter on the CPU. Needs the extra `triton`.

The kernels run in a process of their own: Triton decides when it is first imported whether it
interprets, and other code in this process may need the other answer.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from syno import _core
from syno.codegen.emitters.code_process import CodeProcess
from syno.codegen.emitters.protocol import Case, Code, Emitter


class TritonEmitter(Emitter):
    """Files with `syno_operator`, as `_core.emit_triton` writes them."""

    name = "triton"

    def available(self) -> str | None:
        """None where the package triton is installed."""
        if importlib.util.find_spec("triton") is None:
            return "the package triton is not installed\n  what to do: pip install 'syno[triton]'"
        return None

    def source(self, case: Case) -> str:
        """The file's text."""
        text, _ = _core.emit_triton(
            case.operator.numbered_plan(case.binding), case.operator.formula()
        )
        return text

    def build(self, cases: Sequence[Case], sources: Sequence[str] | None = None) -> Sequence[Code]:
        """A function for each case; kernels are compiled when they first run."""
        texts = [self.source(case) for case in cases] if sources is None else sources
        return _PROCESS.load(texts)


_PROCESS = CodeProcess("Triton", "syno.codegen.emitters.triton_worker")
EMITTER = TritonEmitter()
