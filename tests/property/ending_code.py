"""Functions that end their process, for test_code_process.py: expressions of x."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from syno.codegen.emitters import WrongCodeError, code_process


def end(number: int) -> None:
    os.kill(os.getpid(), number)


def refuse() -> None:
    raise WrongCodeError("refused")


class Functions:
    def __init__(self) -> None:
        self._functions: dict[int, str] = {}

    def load(self, sources: Sequence[str]) -> list[int]:
        found = []
        for source in sources:
            when, _, text = source.rpartition(": ")
            note = Path(os.environ["SYNO_TEST_NOTES"], "ended")
            if when == "always" or (when == "once" and not note.exists()):
                note.touch()
                end(6)
            found.append(len(self._functions))
            self._functions[found[-1]] = text
        return found

    def run(self, question):
        number, x, _ = question
        return eval(
            self._functions[number],
            {"x": x, "end": end, "refuse": refuse, "sleep": time.sleep},
        )

    def forget(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            del self._functions[number]


def main() -> None:
    code_process.serve(Functions())
