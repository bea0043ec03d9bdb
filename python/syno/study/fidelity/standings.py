"""The promotions that are due in a study with a ladder, kept up with the state of the study.

It gives what `Promotions.due` gives for the whole study. Each rung keeps its results in their
order, and those of them that were not sent on: the promotions that are due are the first ones of
these, so that a result costs a search in a sorted list.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort

from syno.store import ProposalRecord, StudyState
from syno.store.records import BASELINE, OK
from syno.study.fidelity.asha import Promotion
from syno.study.fidelity.ladder import Ladder

# A result at a rung, smaller is better: the negative accuracy (infinite for a failure), the number
# of the proposal, and which of its results at this rung it is.
_Place = tuple[float, int, int]


class _Rung:
    """The results of one rung, in order; free: those with an accuracy that were not sent on."""

    def __init__(self) -> None:
        self.order: list[_Place] = []
        self.free: list[_Place] = []

    def due(self, eta: int) -> list[int]:
        """List the proposals that are due for the next rung, the best first."""
        count = len(self.order) // eta
        if not count:
            return []
        end = bisect_right(self.free, self.order[count - 1])
        return [ask for _, ask, _ in self.free[:end]]


class Standings:
    """The rungs of one study.

    Args:
        state: of the study; the caller keeps it up.
        ladder: of the study.
    """

    def __init__(self, state: StudyState, ladder: Ladder) -> None:
        self._state, self._ladder = state, ladder
        self._rungs = [_Rung() for _ in ladder.rungs]
        self._own: dict[int, list[tuple[int, _Place]]] = {}  # of each proposal: rung and place
        self._reached: dict[int, int] = {}
        self._baseline: int | None = None
        self._changes = 0  # those that were looked at

    def due(self) -> list[Promotion]:
        """List the pending evaluations at higher rungs, the next one first: see `Promotions`."""
        for ask in sorted(set(self._state.changed[self._changes :])):
            self._renew(self._state.proposal(ask))
        self._changes = len(self._state.changed)
        found: list[Promotion] = []
        for rung in reversed(range(len(self._rungs) - 1)):
            for ask in self._rungs[rung].due(self._ladder.eta):
                found += [p for p in self._original(rung + 1) if p not in found]
                found.append(Promotion(ask, rung + 1))
        return found

    def _renew(self, record: ProposalRecord) -> None:
        if record.kind == BASELINE:
            self._baseline = record.ask
            return
        for rung, place in self._own.pop(record.ask, []):
            _discard(self._rungs[rung].order, place)
            _discard(self._rungs[rung].free, place)
        own: list[tuple[int, _Place]] = []
        for number, result in enumerate(self._state.results_of(record.ask)):
            if not result.is_evaluated or result.rung_index >= len(self._rungs):
                continue
            accuracy = result.accuracy if result.status == OK else None
            place = (math.inf if accuracy is None else -accuracy, record.ask, number)
            own.append((result.rung_index, place))
            insort(self._rungs[result.rung_index].order, place)
            if accuracy is not None and record.rung_index == result.rung_index:
                insort(self._rungs[result.rung_index].free, place)
        self._own[record.ask] = own

    def _original(self, rung: int) -> list[Promotion]:
        """Promote the baseline before an operator is promoted to `rung`."""
        if self._baseline is None:
            return []
        record = self._state.proposal(self._baseline)
        if record.is_open or record.rung_index >= rung:
            return []
        results = list(self._state.results_of(record.ask))
        if not results or results[-1].status != OK:
            return []
        return [Promotion(record.ask, record.rung_index + 1)]


def _discard(places: list[_Place], place: _Place) -> None:
    at = bisect_left(places, place)
    if at < len(places) and places[at] == place:
        del places[at]
