"""Callbacks of a search: subclass `StudyObserver` and override its methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from syno.study.evaluate.observer import EvaluationObserver

if TYPE_CHECKING:
    from syno.store import Outcome, StudyRecord
    from syno.study.answers import Proposal
    from syno.study.settings import StudySettings
    from syno.study.stoppers import StopReason, Tally


class StudyObserver(EvaluationObserver):
    """Is called by the loop, in its thread. Every method of this class does nothing."""

    def on_compose(self, depth: int, nodes: int, operators: int) -> None:
        """The enumeration has visited `nodes` partial graphs and found `operators`."""

    def on_space(self, operators: int, keys: int, seconds: float) -> None:
        """The space is enumerated: `operators` have `keys` distinct semantic keys."""

    def on_start(self, study: StudyRecord, settings: StudySettings, tally: Tally) -> None:
        """A run starts; `tally` counts the evaluations of earlier runs."""

    def on_ask(self, proposal: Proposal) -> None:
        """An evaluation starts."""

    def on_failure(self, proposal: Proposal, outcome: Outcome) -> None:
        """An evaluation crashed, hung or ran out of memory; it is repeated once."""

    def on_tell(self, proposal: Proposal, outcome: Outcome, tally: Tally) -> None:
        """An evaluation is stored."""

    def on_stop(self, reason: StopReason) -> None:
        """The run ends."""


class Observers(StudyObserver):
    """Several observers as one: each is called, in order."""

    def __init__(self, *observers: StudyObserver) -> None:
        self._observers = observers


def _forwarded(name: str) -> Callable[..., None]:
    def forward(self: Observers, *arguments: object) -> None:
        for observer in self._observers:
            getattr(observer, name)(*arguments)

    return forward


for _name in dir(StudyObserver):
    if _name.startswith("on_"):
        setattr(Observers, _name, _forwarded(_name))
