"""Watching a search: subclass `Observer` and override what is of interest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno.study.evaluate.observer import EvaluationObserver

if TYPE_CHECKING:
    from syno.store import Outcome, StudyRecord
    from syno.study.settings import StudySettings
    from syno.study.stoppers import StopReason, Tally
    from syno.study.study import Proposal


class Observer(EvaluationObserver):
    """Called by the loop, in its thread, between evaluations. Every method does nothing here."""

    def on_compose(self, depth: int, nodes: int, operators: int) -> None:
        """The enumeration goes on: `nodes` partial graphs seen, `operators` found so far."""

    def on_space(self, operators: int, keys: int, seconds: float) -> None:
        """The space was enumerated: `keys` distinct semantic keys among `operators`."""

    def on_start(self, study: StudyRecord, settings: StudySettings, tally: Tally) -> None:
        """A run begins; `tally` counts what earlier runs did."""

    def on_ask(self, proposal: Proposal) -> None:
        """An evaluation begins."""

    def on_failure(self, proposal: Proposal, outcome: Outcome) -> None:
        """An evaluation crashed, hung or ran out of memory; it is tried once more."""

    def on_tell(self, proposal: Proposal, outcome: Outcome, tally: Tally) -> None:
        """An evaluation is stored."""

    def on_stop(self, reason: StopReason) -> None:
        """The run ends."""
