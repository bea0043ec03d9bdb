"""The progress of a search in words: lines about results, and remarks about current work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno._util import numbers
from syno.operators.summary import short_id
from syno.store.documents import PredictedLatency
from syno.store.objective import ACCURACY, objective_of
from syno.study.answers import Proposal
from syno.study.observer import StudyObserver
from syno.study.settings import StudySettings
from syno.study.stoppers import StopReason, Tally

if TYPE_CHECKING:
    from syno.store import Outcome, StudyRecord


class Narration(StudyObserver):
    """Describes the progress of a search. A subclass shows `line`, `remark` and `moved`."""

    def __init__(self) -> None:
        self._total = 0
        self._best: float | None = None
        self._objective = ACCURACY
        self._now = ""
        self._notes: set[str] = set()
        self._width = 16
        self._rung = 0
        self._bests: dict[int, float] = {}  # accuracies of two rungs do not compare

    def line(self, text: str) -> None:
        """Show a line about something that is complete."""

    def remark(self, text: str) -> None:
        """Show a remark about the current work."""

    def moved(self, done: int, total: int) -> None:
        """Show that `done` of `total` operators are trained."""

    def on_compose(self, depth: int, nodes: int, operators: int) -> None:
        """Show the progress of the enumeration."""
        self.remark(f"{nodes:,} partial graphs, depth {depth}, {operators:,} operators")

    def on_space(self, operators: int, keys: int, seconds: float) -> None:
        """Show the number of operators of the space."""
        self.line(
            f"enumerated {operators:,} operators, {keys:,} of them distinct, "
            f"in {numbers.duration(seconds)}"
        )

    def on_start(self, study: StudyRecord, settings: StudySettings, tally: Tally) -> None:
        """Show the progress of earlier runs."""
        self._total = settings.evaluations
        self._width = 16 if settings.ladder is None else 24
        self._objective = objective_of(study.settings)
        place = f"study {study.name}: {numbers.counted(self._total, 'operator')} to train"
        done = f", {tally.evaluated} already done" if tally.evaluated else ""
        self.line(place + done)
        self.moved(tally.evaluated, self._total)

    def on_ask(self, proposal: Proposal) -> None:
        """Remember the current operator."""
        operator = proposal.operator
        self._now = "baseline" if operator is None else short_id(operator.text, operator.key)
        if proposal.rung is not None and proposal.rung != self._rung:
            self._rung, self._best = proposal.rung, self._bests.get(proposal.rung)
        self.remark(self._now + self._where(proposal))

    def on_step(self, step: str) -> None:
        """Show the step beside the bar."""
        self.remark(f"{self._now}: {step}")

    def on_epoch(self, epoch: int, epochs: int, loss: float) -> None:
        """Show the epoch beside the bar."""
        self.remark(f"{self._now}: epoch {epoch}/{epochs}, loss {loss:.3f}")

    def on_failure(self, proposal: Proposal, outcome: Outcome) -> None:
        """Show that an evaluation is repeated."""
        self.line(f"{self._now:<16} {outcome.reason}; it is evaluated once more")

    def on_note(self, text: str) -> None:
        """Show the note, once: each trial may have the same to say."""
        if text not in self._notes:
            self._notes.add(text)
            self.line(text)

    def on_tell(self, proposal: Proposal, outcome: Outcome, tally: Tally) -> None:
        """Show one line for each result."""
        name = "baseline" if proposal.is_baseline else self._now
        if not proposal.is_baseline and not proposal.rung:
            name = f"{tally.evaluated}/{self._total} {name}"
        name += self._where(proposal)
        value = self._objective.of(outcome.accuracy, outcome.details)
        if value is None:
            self.line(f"{name:<{self._width}} {outcome.status}: {outcome.reason}")
        else:
            timed = outcome.measurement or outcome.latency
            latency = numbers.milliseconds(timed.median_ms if timed else None)
            if outcome.measurement is not None:
                latency += f" ({numbers.speedup(outcome.measurement.ratio)})"
            elif timed is None and "ratio" in (
                predicted := outcome.details.get("predicted_latency", PredictedLatency())
            ):
                latency = f"predicted {numbers.speedup(predicted['ratio'])}"
            mark = self._mark(proposal, value)
            shown = f"{self._objective.shown(value):>7}"
            if not self._objective.is_share:
                beside = self._objective.beside(value)
                shown = f"{self._objective.name} {shown.strip()}" + (
                    f", {beside}" if beside else ""
                )
            macs, seconds = numbers.count(outcome.macs), numbers.duration(outcome.seconds)
            self.line(
                f"{name:<{self._width}} {shown}  {latency:>16}  {macs:>7} MACs  {seconds:>7}{mark}"
            )
        self.moved(tally.evaluated, self._total)

    def on_stop(self, reason: StopReason) -> None:
        """Show why the run ended."""
        self.line(f"stopped: {reason.text}")

    def _where(self, proposal: Proposal) -> str:
        """Name the rung, counted from 1; an empty text without a ladder."""
        return "" if proposal.rung is None else f" rung {proposal.rung + 1}"

    def _mark(self, proposal: Proposal, value: float) -> str:
        if proposal.is_baseline:
            return ""
        score = self._objective.score(value)
        better = self._best is not None and score > self._best
        self._best = score if self._best is None else max(score, self._best)
        self._bests[self._rung] = self._best
        return "  best so far" if better else ""
