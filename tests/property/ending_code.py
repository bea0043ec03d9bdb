"""Functions that end their process, for test_code_process.py: expressions of x."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from syno.codegen.emitters import WrongCodeError, code_process


def end(number: int) -> None:
    os.kill(os.getpid(), number)


def refuse() -> None:
    raise WrongCodeError("refused")


def load(sources: Sequence[str]) -> list[Callable[..., object]]:
    found = []
    for source in sources:
        when, _, text = source.rpartition(": ")
        note = Path(os.environ["SYNO_TEST_NOTES"], "ended")
        if when == "always" or (when == "once" and not note.exists()):
            note.touch()
            end(6)
        found.append(functools.partial(run, text))
    return found


def run(text: str, x: object, weights: object) -> object:
    return eval(text, {"x": x, "end": end, "refuse": refuse, "sleep": time.sleep})


def main() -> None:
    code_process.serve(load)
