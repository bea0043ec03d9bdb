"""Progress of a search: a bar on a terminal, otherwise a line for each evaluation."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from syno._util.command_line import command_line
from syno.cli import output
from syno.cli.framework import resumable
from syno.study.narration import Narration
from syno.study.settings import StudySettings
from syno.study.stoppers import Tally

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from syno.store import StudyRecord


class Watch(Narration):
    """Prints the progress of a run: `with Watch(store) as watch: run(..., observer=watch)`."""

    def __init__(self, store: str) -> None:
        """Store: the address of the store, for the command that resumes the run."""
        super().__init__()
        self._store = store
        self._bar: Progress | None = output.progress_bar() if sys.stderr.isatty() else None
        self._task: TaskID | None = None

    def __enter__(self) -> Watch:
        if self._bar is not None:
            self._bar.start()
            self._task = self._bar.add_task(
                "composing operators", total=None, remark="", clock=output.ProgressClock()
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def on_start(self, study: StudyRecord, settings: StudySettings, tally: Tally) -> None:
        """Show the progress of earlier runs, and state the command that resumes the study."""
        resumable(command_line("resume", store=self._store, study=study.name))
        self._clock = output.ProgressClock(tally.evaluated)
        self._move = output.line_move("training", settings.evaluations, self._clock)
        super().on_start(study, settings, tally)

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
        """Move the bar; without a terminal, print a line every few seconds."""
        if self._bar is None or self._task is None:
            self._move(done)
            return
        bar, task = self._bar, self._task
        bar.update(task, description="training", total=total, completed=done, remark="")
        bar.update(task, clock=self._clock)
