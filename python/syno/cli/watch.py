"""A search as it runs: a bar on a terminal, a line for each evaluation elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno.cli import output
from syno.store.objective import ACCURACY, objective_of
from syno.study import Observer, Proposal, StopReason, StudySettings, Tally

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from syno.store import Outcome, StudyRecord


class Watch(Observer):
    """Shows a run on stderr; `with Watch() as watch: run(..., observer=watch)`."""

    def __init__(self) -> None:
        self._settings: StudySettings | None = None
        self._total = 0
        self._best: float | None = None
        self._objective = ACCURACY
        self._now = ""
        self._width = 16
        self._rung = 0
        self._bests: dict[int, float] = {}  # accuracies of two rungs do not compare
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

    def on_compose(self, depth: int, nodes: int, operators: int) -> None:
        """Show how far the enumeration is."""
        self._remark(f"{nodes:,} partial graphs, depth {depth}, {operators:,} operators")

    def on_space(self, operators: int, keys: int, seconds: float) -> None:
        """Say how many operators there are to choose from."""
        self._line(
            f"composed {operators:,} operators, {keys:,} of them distinct, "
            f"in {fmt.duration(seconds)}"
        )

    def on_start(self, study: StudyRecord, settings: StudySettings, tally: Tally) -> None:
        """Set the bar to what earlier runs did."""
        self._total = settings.evaluations
        self._width = 16 if settings.ladder is None else 24
        self._objective = objective_of(study.settings)
        place = f"study {study.name}: {self._total} operators to train"
        done = f", {tally.evaluated} already done" if tally.evaluated else ""
        self._line(place + done)
        self._move(tally, "")

    def on_ask(self, proposal: Proposal) -> None:
        """Remember what is worked on."""
        self._now = "baseline" if proposal.is_baseline else proposal.operator.key[:8]  # type: ignore[union-attr]
        if proposal.rung is not None and proposal.rung != self._rung:
            self._rung, self._best = proposal.rung, self._bests.get(proposal.rung)
        self._remark(self._now + self._where(proposal))

    def on_step(self, step: str) -> None:
        """Show the step beside the bar."""
        self._remark(f"{self._now}: {step}")

    def on_epoch(self, epoch: int, epochs: int, loss: float) -> None:
        """Show the epoch beside the bar."""
        self._remark(f"{self._now}: epoch {epoch}/{epochs}, loss {loss:.3f}")

    def on_failure(self, proposal: Proposal, outcome: Outcome) -> None:
        """Say what is tried again."""
        self._line(f"{self._now:<16} {outcome.reason}; once more")

    def on_note(self, text: str) -> None:
        """Say it."""
        self._line(text)

    def on_tell(self, proposal: Proposal, outcome: Outcome, tally: Tally) -> None:
        """One line for each answer."""
        name = "baseline" if proposal.is_baseline else self._now
        if not proposal.is_baseline and not proposal.rung:
            name = f"{tally.evaluated}/{self._total} {name}"
        name += self._where(proposal)
        value = self._objective.of(outcome.accuracy, outcome.details)
        if value is None:
            self._line(f"{name:<{self._width}} {outcome.status}: {outcome.reason}")
        else:
            timed = outcome.measurement or outcome.latency
            latency = fmt.milliseconds(timed.median_ms if timed else None)
            mark = self._mark(proposal, value)
            shown = f"{self._objective.shown(value):>7}"
            if not self._objective.is_share:
                shown = f"loss {shown.strip()}, {self._objective.beside(value)}"
            self._line(
                f"{name:<{self._width}} {shown}  {latency:>8}  "
                f"{fmt.count(outcome.macs):>7} MACs  {fmt.duration(outcome.seconds):>7}{mark}"
            )
        self._move(tally, "")

    def on_stop(self, reason: StopReason) -> None:
        """Say why the run ended."""
        self._line(f"stopped: {reason.text}")

    def _where(self, proposal: Proposal) -> str:
        """The rung, counted from 1, where there are several."""
        return "" if proposal.rung is None else f" rung {proposal.rung + 1}"

    def _mark(self, proposal: Proposal, value: float) -> str:
        if proposal.is_baseline:
            return ""
        score = self._objective.score(value)
        better = self._best is not None and score > self._best
        self._best = score if self._best is None else max(score, self._best)
        self._bests[self._rung] = self._best
        return "  best so far" if better else ""

    def _line(self, text: str) -> None:
        if self._bar is None:
            output.say(text)
        else:
            self._bar.console.print(text)

    def _move(self, tally: Tally, remark: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                description="training",
                total=self._total,
                completed=tally.evaluated,
                remark=remark,
            )

    def _remark(self, text: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, remark=text)
