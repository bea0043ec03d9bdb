"""A search in words: lines about what is done, and remarks about what is being done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno._util import numbers
from syno.store.objective import ACCURACY, objective_of
from syno.study.observer import Observer
from syno.study.settings import StudySettings
from syno.study.stoppers import StopReason, Tally
from syno.study.study import Proposal

if TYPE_CHECKING:
    from syno.store import Outcome, StudyRecord


class Narration(Observer):
    """Tells how a search goes: a subclass says where `line`, `remark` and `moved` go."""

    def __init__(self) -> None:
        self._total = 0
        self._best: float | None = None
        self._objective = ACCURACY
        self._now = ""
        self._width = 16
        self._rung = 0
        self._bests: dict[int, float] = {}  # accuracies of two rungs do not compare

    def line(self, text: str) -> None:
        """Something is done."""

    def remark(self, text: str) -> None:
        """Something is being done."""

    def moved(self, done: int, total: int) -> None:
        """So many operators are trained."""

    def on_compose(self, depth: int, nodes: int, operators: int) -> None:
        """Show how far the enumeration is."""
        self.remark(f"{nodes:,} partial graphs, depth {depth}, {operators:,} operators")

    def on_space(self, operators: int, keys: int, seconds: float) -> None:
        """Say how many operators there are to choose from."""
        self.line(
            f"composed {operators:,} operators, {keys:,} of them distinct, "
            f"in {numbers.duration(seconds)}"
        )

    def on_start(self, study: StudyRecord, settings: StudySettings, tally: Tally) -> None:
        """Set the bar to what earlier runs did."""
        self._total = settings.evaluations
        self._width = 16 if settings.ladder is None else 24
        self._objective = objective_of(study.settings)
        place = f"study {study.name}: {self._total} operators to train"
        done = f", {tally.evaluated} already done" if tally.evaluated else ""
        self.line(place + done)
        self.moved(tally.evaluated, self._total)

    def on_ask(self, proposal: Proposal) -> None:
        """Remember what is worked on."""
        operator = proposal.operator
        self._now = "baseline" if operator is None else operator.key[:8]
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
        """Say what is tried again."""
        self.line(f"{self._now:<16} {outcome.reason}; it is evaluated once more")

    def on_note(self, text: str) -> None:
        """Say it."""
        self.line(text)

    def on_tell(self, proposal: Proposal, outcome: Outcome, tally: Tally) -> None:
        """One line for each answer."""
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
            mark = self._mark(proposal, value)
            shown = f"{self._objective.shown(value):>7}"
            if not self._objective.is_share:
                shown = f"loss {shown.strip()}, {self._objective.beside(value)}"
            macs, seconds = numbers.count(outcome.macs), numbers.duration(outcome.seconds)
            self.line(
                f"{name:<{self._width}} {shown}  {latency:>8}  {macs:>7} MACs  {seconds:>7}{mark}"
            )
        self.moved(tally.evaluated, self._total)

    def on_stop(self, reason: StopReason) -> None:
        """Say why the run ended."""
        self.line(f"stopped: {reason.text}")

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
