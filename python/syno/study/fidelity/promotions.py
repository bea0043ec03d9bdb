"""The promotions of a study, computed from the state of its rungs in the store."""

from __future__ import annotations

from collections.abc import Sequence

from syno.store import ProposalRecord, RungResult
from syno.store.records import BASELINE, OK, OPERATOR
from syno.study.fidelity import asha
from syno.study.fidelity.asha import Promotion, RungScore
from syno.study.fidelity.ladder import Ladder


class Promotions:
    """The state of a study with a ladder: its proposals and results at one moment."""

    def __init__(
        self, ladder: Ladder, proposals: Sequence[ProposalRecord], results: Sequence[RungResult]
    ) -> None:
        self._ladder = ladder
        self._proposals = {p.ask: p for p in proposals}
        self._reached = {p.ask: p.rung_index for p in proposals}
        self._stored = results
        self._results = [
            RungScore(r.ask, r.rung_index, r.accuracy if r.status == OK else None)
            for r in results
            if r.kind == OPERATOR and r.is_evaluated
        ]

    def due(self) -> list[Promotion]:
        """List the pending evaluations at higher rungs, the next one first.

        The baseline is promoted to a rung directly before the first operator, because operators are
        compared with its accuracy there. After a failure, the baseline is not promoted.
        """
        count, eta = len(self._ladder.rungs), self._ladder.eta
        found: list[Promotion] = []
        for promotion in asha.due(self._results, self._reached, count, eta):
            found += [p for p in self._baseline(promotion.rung) if p not in found]
            found.append(promotion)
        return found

    def _baseline(self, rung: int) -> list[Promotion]:
        """Promote the baseline before an operator is promoted to `rung`."""
        record = next((p for p in self._proposals.values() if p.kind == BASELINE), None)
        if record is None or record.is_open or record.rung_index >= rung:
            return []
        last = next((r for r in reversed(self._stored) if r.ask == record.ask), None)
        if last is None or last.status != OK:
            return []
        return [Promotion(record.ask, record.rung_index + 1)]

    def proposal(self, promotion: Promotion) -> ProposalRecord:
        """Return the proposal that a promotion belongs to."""
        return self._proposals[promotion.ask]

    def values(self) -> dict[int, float]:
        """Rate each operator, by its number, from 0 to 1: see `asha.values`."""
        return asha.values(self._results, len(self._ladder.rungs))

    def pending_checkpoints(self) -> set[tuple[str, int]]:
        """List the checkpoints of pending evaluations as (key, first rung of the training)."""
        return {
            (p.key or BASELINE, self._ladder.stretch(p.rung_index)[0])
            for p in self._proposals.values()
            if p.is_open
        }

    def needed_checkpoints(self, most: int) -> set[tuple[str, int]]:
        """List the checkpoints that may still be needed when the study evaluates `most` operators.

        Pending evaluations need their checkpoints. If the next rung continues from a checkpoint,
        the results that may still be among the best of their rung need theirs as well.
        """
        found = self.pending_checkpoints()
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
