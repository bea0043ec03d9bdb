"""Triton: kernels on a GPU, or by Triton's interpreter on the CPU. Needs the extra `triton`.

The kernels run in a process of their own: Triton decides when it is first imported whether it
interprets, and other code in this process may need the other answer.
"""

from __future__ import annotations

import atexit
import collections
import importlib.util
import os
import pickle
import subprocess
import threading
import weakref
from collections.abc import Sequence
from typing import Any

from syno import _core
from syno.codegen.emitters.protocol import Array, Case, Code, Emitter, WrongCodeError
from syno.codegen.emitters.triton_worker import QUESTION
from syno.runs import framing, helper_process


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
        numbers = _WORKER.ask("load", list(texts))
        return [_Loaded(number) for number in numbers]


class _Loaded:
    """A function that stands in the worker."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._forget = weakref.finalize(self, _WORKER.forget, number)
        self._forget.atexit = False

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        result: Array = _WORKER.ask("run", (self._number, x, list(weights)))
        return result


class _Worker:
    """The process with the kernels, started when it is first asked."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._forgotten: collections.deque[int] = collections.deque()

    def ask(self, command: str, argument: object) -> Any:
        """What the worker answers. WrongCodeError with its words when it fails."""
        with self._lock:
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            forgotten = [self._forgotten.popleft() for _ in range(len(self._forgotten))]
            try:
                question = pickle.dumps((command, argument, forgotten))
                framing.write(process.stdin.fileno(), QUESTION, question)
                good, answer = pickle.loads(framing.read(process.stdout.fileno())[1])
            except (EOFError, OSError) as error:
                self._process = None
                raise WrongCodeError(
                    f"the process that runs Triton ended with code {process.wait()}"
                ) from error
        if not good:
            raise WrongCodeError(answer)
        return answer

    def forget(self, number: int) -> None:
        """The function is gone; the worker hears of it with the next question."""
        self._forgotten.append(number)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                helper_process.command("syno.codegen.emitters.triton_worker"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=helper_process.environment(
                    OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1")
                ),
            )
            atexit.register(_close, self._process)
        return self._process


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


_WORKER = _Worker()
EMITTER = TritonEmitter()
