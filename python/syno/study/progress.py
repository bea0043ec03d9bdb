"""The progress of a search on a terminal or in a notebook; logs and pipes stay clean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from syno.store.records import VALIDATION
from syno.study.narration import Narration
from syno.study.observer import StudyObserver
from syno.study.stoppers import StopReason, Tally

if TYPE_CHECKING:
    from rich.progress import TaskID

    from syno.store import Evaluation, Outcome, Store, StudyRecord
    from syno.study.answers import Proposal
    from syno.study.settings import StudySettings

# Is called with each trial that is stored; a search stops after one that returns True.
Callback = Callable[["Evaluation"], "bool | None"]


class SearchBar(Narration):
    """A bar with a line for each trial above it: `with SearchBar() as bar: ...`."""

    def __init__(self, bar: Progress | None = None) -> None:
        super().__init__()
        self._bar = bar or _bar()
        self._task: TaskID | None = None

    def __enter__(self) -> SearchBar:
        self._bar.start()
        self._task = self._bar.add_task("composing operators", total=None, remark="")
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(text, markup=False, highlight=False)

    def remark(self, text: str) -> None:
        """Set the remark next to the bar."""
        if self._task is not None:
            self._bar.update(self._task, remark=text)

    def moved(self, done: int, total: int) -> None:
        """Move the bar."""
        if self._task is not None:
            self._bar.update(
                self._task, description="training", total=total, completed=done, remark=""
            )


class Notes(StudyObserver):
    """Prints what must be known about a search, such as its layers, and no progress: for logs."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._seen: set[str] = set()

    def on_note(self, text: str) -> None:
        """Print the note, once."""
        if text not in self._seen:
            self._seen.add(text)
            self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def on_stop(self, reason: StopReason) -> None:
        """Print why a search ended that could not judge any operator."""
        if reason.name in ("baseline", "errors"):
            self.on_note(f"stopped: {reason.text}")


def is_shown() -> bool:
    """Whether standard error is a terminal, or the process a notebook."""
    console = Console(stderr=True)
    return console.is_terminal or console.is_jupyter


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[remark]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )


class Callbacks(StudyObserver):
    """Calls functions with each stored trial. As a stopper, it stops when one returned True."""

    def __init__(self, store: Store, functions: Sequence[Callback]) -> None:
        self._store, self._functions = store, tuple(functions)
        self._study: StudyRecord | None = None
        self._stop = ""

    def on_start(self, study: StudyRecord, settings: StudySettings, tally: Tally) -> None:
        """Remember the study."""
        self._study = study

    def on_tell(self, proposal: Proposal, outcome: Outcome, tally: Tally) -> None:
        """Call the functions with the trial as it is stored."""
        if not self._functions:  # reading it takes time
            return
        assert self._study is not None
        stored = self._store.evaluations(self._study)
        trial = [e for e in stored if e.ask == proposal.ask and e.split == VALIDATION][-1]
        for function in self._functions:
            if function(trial) is True:
                name = getattr(function, "__name__", type(function).__name__)
                self._stop = self._stop or f"the callback '{name}' stopped the search"

    def check(self, tally: Tally) -> StopReason | None:
        """See Stopper."""
        return StopReason("callback", self._stop) if self._stop else None
