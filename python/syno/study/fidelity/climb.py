"""A study's way up its ladder: what the store knows of the rungs, and what is due there."""

from __future__ import annotations

from collections.abc import Sequence

from syno.store import ProposalRecord, RungResult
from syno.store.records import BASELINE, OK, OPERATOR
from syno.study.fidelity import asha
from syno.study.fidelity.asha import Promotion, Result
from syno.study.fidelity.ladder import Ladder


class Climb:
    """The proposals and results of a study at one moment, read by the rule of the ladder."""

    def __init__(
        self, ladder: Ladder, proposals: Sequence[ProposalRecord], results: Sequence[RungResult]
    ) -> None:
        self._ladder = ladder
        self._proposals = {p.ask: p for p in proposals}
        self._reached = {p.ask: p.rung_index for p in proposals}
        self._told = results
        self._results = [
            Result(r.ask, r.rung_index, r.accuracy if r.status == OK else None)
            for r in results
            if r.kind == OPERATOR and r.is_evaluated
        ]

    def due(self) -> list[Promotion]:
        """What is to be evaluated at higher rungs, the one to do next first.

        The original network comes to a rung right before the first operator: what it reaches there
        is what operators are compared with. Where it failed, it goes no further.
        """
        count, eta = len(self._ladder.rungs), self._ladder.eta
        found: list[Promotion] = []
        for promotion in asha.due(self._results, self._reached, count, eta):
            found += [p for p in self._baseline(promotion.rung) if p not in found]
            found.append(promotion)
        return found

    def _baseline(self, rung: int) -> list[Promotion]:
        """The steps that the baseline is to take before an operator comes to `rung`."""
        record = next((p for p in self._proposals.values() if p.kind == BASELINE), None)
        if record is None or record.is_open or record.rung_index >= rung:
            return []
        last = next((r for r in reversed(self._told) if r.ask == record.ask), None)
        if last is None or last.status != OK:
            return []
        return [Promotion(record.ask, record.rung_index + 1)]

    def proposal(self, promotion: Promotion) -> ProposalRecord:
        """What a promotion is about."""
        return self._proposals[promotion.ask]

    def values(self) -> dict[int, float]:
        """By number, how good each operator turned out to be: see `asha.values`."""
        return asha.values(self._results, len(self._ladder.rungs))

    def open(self) -> set[tuple[str, int]]:
        """The checkpoints of what is being evaluated, each as (key, first rung of its training)."""
        return {
            (p.key or BASELINE, self._ladder.stretch(p.rung_index)[0])
            for p in self._proposals.values()
            if p.is_open
        }

    def waiting(self, most: int) -> set[tuple[str, int]]:
        """The checkpoints that may still be needed when the study evaluates `most` operators.

        What is open is needed, and the results that may still rank among the best of their rung,
        where the next rung goes on from them.
        """
        found = self.open()
        for rung in range(len(self._ladder.rungs) - 1):
            if not self._ladder.continues(rung + 1):
                continue
            first = self._ladder.stretch(rung)[0]
            may = asha.keeps(self._results, rung, most, self._ladder.eta)
            for record in self._proposals.values():
                here = record.rung_index == rung and not record.is_open
                if here and (record.ask in may or record.kind == BASELINE):
                    found.add((record.key or BASELINE, first))
        return found
