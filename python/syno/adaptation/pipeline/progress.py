"""Who is told how far an adaptation is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from syno._util import numbers
from syno.study.progress import is_shown

# Called with what is done of a phase, of how much, and a remark.
Progress = Callable[[int, int, str], None]
# Phases whose remark is a sentence for the user.
SENTENCES = ("forecast", "note")
# Seconds between the lines of a log.
_LINE_EVERY = 20.0


class AdaptationObserver(Protocol):
    """Is told how far an adaptation is: the phase, and how much is done of it, and with what."""

    def __call__(self, phase: str, done: int, total: int, remark: str) -> None:
        """Take note."""


def silent(*_: object, **__: object) -> None:
    """Nobody watches."""


@contextmanager
def shown() -> Iterator[AdaptationObserver]:
    """A progress bar on a terminal or in a notebook; elsewhere a line on standard error at times.

    Notes and forecasts are printed in any case.
    """
    console = Console(stderr=True)

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    if not is_shown():
        yield _lines(say)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[remark]}", markup=False),
    )
    with RichProgress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("adapting", total=None, remark="")

        def move(phase: str, done: int, total: int, remark: str) -> None:
            if phase in SENTENCES:
                say(remark)
            else:
                bar.update(task, description=phase, completed=done, total=total, remark=remark)

        yield move


def _lines(say: Callable[[str], None]) -> AdaptationObserver:
    """An observer that says where an adaptation is, but not more often than every 20 s."""
    began = time.monotonic()
    last = -_LINE_EVERY

    def line(phase: str, done: int, total: int, remark: str) -> None:
        nonlocal last
        now = time.monotonic() - began
        if phase in SENTENCES:
            say(remark)
        elif now - last >= _LINE_EVERY:
            last = now
            say(f"{numbers.duration(now)}: {phase}, {done} of {total} {remark}".rstrip())

    return line
