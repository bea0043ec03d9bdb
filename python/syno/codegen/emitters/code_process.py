"""Code that runs in a process of its own: what a library's compiler or its code does to its process
is not done to this one. The process answers questions on its standard input, pickled, in the
messages of framing.py; a question is a command, its argument, and the numbers of functions that
nobody needs any more.
"""

from __future__ import annotations

import atexit
import collections
import itertools
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from syno.codegen.emitters.protocol import Array, WrongCodeError
from syno.runs import framing, helper_process

_QUESTION, _ANSWER = b"q", b"a"
_MOST_S = 1200.0  # of one question: a process that says nothing for so long hangs


# y of x and the weights.
Function: TypeAlias = Callable[[Array, Sequence[Array]], Array]


class CodeProcess:
    """The process with the functions of a library, started when it is first asked.

    Args:
        library: its name in messages.
        module: the module whose `main()` calls `serve`.
    """

    def __init__(self, library: str, module: str) -> None:
        self._library, self._module = library, module
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._forgotten: collections.deque[tuple[object, int]] = collections.deque()

    def load(self, sources: Sequence[object]) -> list[LoadedCode]:
        """The functions of these sources. WrongCodeError with the library's words if it fails."""
        try:
            numbers, process = self._ask("load", list(sources))
        except _EndedError:
            # Nothing of the code has run yet. A compiler that ends so once more has a reason.
            numbers, process = self._ask("load", list(sources))
        return [LoadedCode(self, process, number) for number in numbers]

    def run(self, process: object, number: int, x: Array, weights: Sequence[Array]) -> Array:
        """y of a function that stands in a process. WrongCodeError where it has ended, too."""
        result: Array = self._ask("run", (number, x, list(weights)), process)[0]
        return result

    def forget(self, process: object, number: int) -> None:
        """The function is gone; its process hears of it with the next question."""
        self._forgotten.append((process, number))

    def _ask(self, command: str, argument: object, there: object = None) -> tuple[Any, object]:
        """What the process answers, and which process it is; `there`: the only one to be asked."""
        with self._lock:
            process = self._started()
            if there is not None and process is not there:
                raise _EndedError(f"the process that ran this code with {self._library} has ended")
            gone = [self._forgotten.popleft() for _ in range(len(self._forgotten))]
            forgotten = [number for where, number in gone if where is process]
            try:
                good, answer = _asked(process, pickle.dumps((command, argument, forgotten)))
            except (EOFError, OSError) as error:
                self._process = None
                code = process.wait()
                raise _EndedError(
                    f"the process that runs {self._library} ended with code {code}"
                ) from error
            except BaseException as error:  # Ctrl-C too: its answer would be that of the next
                self._process = None
                process.kill()
                process.wait()
                if isinstance(error, _SilentError):
                    raise WrongCodeError(
                        f"the process that runs {self._library} did not answer in {_MOST_S:g} s"
                    ) from error
                raise
        if not good:
            raise WrongCodeError(answer)
        return answer, process

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                helper_process.command(self._module),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=helper_process.environment(
                    OMP_NUM_THREADS=os.environ.get("OMP_NUM_THREADS", "1")
                ),
            )
            atexit.register(_close, self._process)
        return self._process


class _EndedError(WrongCodeError):
    """The process has ended."""


class _SilentError(Exception):
    """The process did not answer."""


def _asked(process: subprocess.Popen[bytes], question: bytes) -> tuple[bool, Any]:
    end = time.monotonic() + _MOST_S

    def waited() -> None:
        if time.monotonic() > end:
            raise _SilentError

    assert process.stdin is not None and process.stdout is not None
    framing.write(process.stdin.fileno(), _QUESTION, question)
    _, content = framing.read(process.stdout.fileno(), waited=waited)
    answer: tuple[bool, Any] = pickle.loads(content)
    return answer


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


class LoadedCode:
    """A function in the process."""

    def __init__(self, code: CodeProcess, process: object, number: int) -> None:
        self._code, self._process, self._number = code, process, number
        self._forget = weakref.finalize(self, code.forget, process, number)
        self._forget.atexit = False

    def __call__(self, x: Array, weights: Sequence[Array]) -> Array:
        """y."""
        return self._code.run(self._process, self._number, x, weights)


def serve(load: Callable[[Sequence[Any]], Sequence[Function]]) -> None:
    """Answer questions until the standard input ends. What code prints goes to standard error.

    load: makes functions of sources.
    """
    questions, answers = sys.stdin.fileno(), os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    functions: dict[int, Function] = {}
    numbers = itertools.count()

    def loaded(sources: Sequence[Any]) -> list[int]:
        made = {number: one for one, number in zip(load(sources), numbers, strict=False)}
        functions.update(made)
        return list(made)

    def run(question: tuple[int, Array, list[Array]]) -> Array:
        number, x, weights = question
        return functions[number](x, weights)

    commands: dict[str, Callable[[Any], object]] = {"load": loaded, "run": run}
    while True:
        try:
            command, argument, forgotten = pickle.loads(framing.read(questions)[1])
        except EOFError:
            return
        for number in forgotten:
            del functions[number]
        try:
            answer = True, commands[command](argument)
        except WrongCodeError as error:
            answer = False, str(error)
        except Exception as error:
            answer = False, f"{type(error).__name__}: {error}"
        framing.write(answers, _ANSWER, pickle.dumps(answer))
