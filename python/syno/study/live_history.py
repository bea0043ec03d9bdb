"""The history of a study for its search method, kept up with the state of the study.

A history is a value of its own: later results do not change it. With the default objective and
without a ladder, a result changes the entry of its operator alone. Otherwise ratings are ranks
among all results, so that a result may change all of them.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping

from syno.store import StudyState
from syno.store.objectives import Objectives
from syno.store.records import BASELINE
from syno.study.fidelity.ladder import Ladder
from syno.study.fidelity.promotions import Promotions
from syno.study.methods.history import History, HistoryEntry, Lineage, Trial, as_trial
from syno.study.ratings import rated


class LiveHistory:
    """The history of one study, of which `history` reads only what has changed.

    Args:
        state: of the study; the caller keeps it up.
        objectives: of the study.
        ladder: of the study; None if it has none.
    """

    def __init__(self, state: StudyState, objectives: Objectives, ladder: Ladder | None) -> None:
        self._state, self._objectives, self._ladder = state, objectives, ladder
        # A rating depends on the own result of an operator alone.
        self._is_own = ladder is None and objectives.are_default and objectives.objective.is_share
        self._lineage = Lineage()
        self._entries: list[HistoryEntry] = []
        self._places: dict[int, int] = {}  # of entries, by the number of the proposal
        self._baseline: tuple[Trial, ...] = ()
        self._values: Mapping[int, float] = {}
        self._told = _Told()
        self._events = self._changes = 0  # those that were looked at
        self._rated = -1  # the version of the results

    def history(self, number: int) -> History:
        """Return the history before proposal `number`, which has seen all events of the state."""
        stale = set(self._state.changed[self._changes :])
        self._changes = len(self._state.changed)
        for event in self._state.events[self._events :]:
            if event.kind == "asked":
                if self._state.proposal(event.data["ask"]).kind != BASELINE:
                    stale |= self._told.asked(event.data.get("seen", event.sequence - 1))
            elif event.kind == "told":
                self._told.told(event.data["ask"], event.sequence)
        self._events = self._state.seen
        stale |= self._rate()
        for ask in sorted(stale):
            self._renew(ask)
        several = None if self._objectives.are_default else self._objectives
        return History(
            number,
            tuple(self._entries),
            self._objectives.objective,
            self._baseline,
            several,
            self._ladder is not None,
            self._lineage.now(),
        )

    def _rate(self) -> set[int]:
        """Rate all operators again where one result changes others; return whose rating changed."""
        if self._is_own or self._rated == self._state.versions:
            return set()
        self._rated = self._state.versions
        before = self._values
        if not (self._objectives.are_default and self._objectives.objective.is_share):
            rungs = 1 if self._ladder is None else len(self._ladder.rungs)
            self._values = rated(self._objectives, self._state.evaluations, rungs)
        else:
            assert self._ladder is not None
            promotions = Promotions(self._ladder, (), self._state.results)
            self._values = promotions.values()
        every = before.keys() | self._values.keys()
        return {ask for ask in every if before.get(ask) != self._values.get(ask)}

    def _value(self, ask: int) -> float | None:
        if not self._is_own:
            return self._values.get(ask)
        own = self._state.results_of(ask)
        return next((result.accuracy or 0.0 for result in own if result.is_evaluated), None)

    def _renew(self, ask: int) -> None:
        """Make the entry of a proposal again."""
        record = self._state.proposal(ask)
        objective = self._objectives.objective
        trials = tuple(as_trial(each, objective) for each in self._state.evaluations_of(ask))
        if record.kind == BASELINE:
            self._baseline = trials
            return
        if record.key is None:
            return
        entry = HistoryEntry(
            ask,
            record.key,
            record.status,
            self._value(ask),
            record.text or "",
            trials,
            self._told.after(ask),
        )
        place = self._places.get(ask)
        if place is None:
            self._places[ask] = len(self._entries)
            self._entries.append(entry)
            self._lineage.added(record.key)
        elif self._entries[place] != entry:
            self._entries[place] = entry
            self._lineage.changed(place)


class _Told:
    """How many operators had been proposed without the first result of each proposal.

    A proposal follows from the events that were there when the history was read (`seen`), and a
    result may arrive between that and the event of the proposal. Later proposals have seen more.
    """

    def __init__(self) -> None:
        self._seen: list[int] = []  # by each proposal of an operator, ascending
        self._first: dict[int, int] = {}  # the number of the event of the first result
        self._late: list[tuple[int, int]] = []  # (event, ask) that no proposal has seen

    def asked(self, seen: int) -> set[int]:
        """Take the next proposal of an operator; return whose number it changes."""
        self._seen.append(seen)
        self._late = [each for each in self._late if each[0] > seen]
        return {ask for _, ask in self._late}

    def told(self, ask: int, sequence: int) -> None:
        """Take the next result."""
        if ask not in self._first:
            self._first[ask] = sequence
            self._late.append((sequence, ask))

    def after(self, ask: int) -> int | None:
        """Return the number for a proposal; None without a result."""
        sequence = self._first.get(ask)
        return None if sequence is None else bisect.bisect_left(self._seen, sequence)
