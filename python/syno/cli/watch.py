"""Progress of a search: a bar on a terminal, otherwise a line for each evaluation."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from syno.cli import output
from syno.study.narration import Narration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Watch(Narration):
    """Prints the progress of a run: `with Watch() as watch: run(..., observer=watch)`."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Progress | None = output.progress_bar() if sys.stderr.isatty() else None
        self._task: TaskID | None = None

    def __enter__(self) -> Watch:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task("composing operators", total=None, remark="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        if self._bar is None:
            output.say(text)
        else:
            self._bar.console.print(text)

    def remark(self, text: str) -> None:
        """Set the remark next to the bar."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, remark=text)

    def moved(self, done: int, total: int) -> None:
        """Move the bar."""
        if self._bar is not None and self._task is not None:
            bar, task = self._bar, self._task
            bar.update(task, description="training", total=total, completed=done, remark="")
