"""A study as reading all of it again gives it: what the state of a study must be equal to."""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from syno.store import Evaluation, EventRecord, ProposalRecord, RungResult, Store, StudyRecord
from syno.store.records import BASELINE
from syno.study import History, Study
from syno.study.fidelity.promotions import Promotions
from syno.study.methods.history import HistoryEntry, as_trial
from syno.study.ratings import rated


@dataclass(frozen=True)
class Whole:
    """A study at one moment of its log."""

    events: Sequence[EventRecord]
    proposals: Sequence[ProposalRecord]
    results: Sequence[RungResult]
    evaluations: Sequence[Evaluation]


def read_again(store: Store, study: StudyRecord) -> Whole:
    """Read a study in which nothing happens at the moment."""
    return Whole(
        store.events(study),
        store.proposals(study),
        store.rung_results(study),
        store.evaluations(study),
    )


def history_of(study: Study, number: int, whole: Whole) -> History:
    """The history before a proposal, made of the whole study."""
    if not (study.objectives.are_default and study.objectives.objective.is_share):
        rungs = 1 if study.ladder is None else len(study.ladder.rungs)
        values = rated(study.objectives, whole.evaluations, rungs)
    elif study.ladder is not None:
        values = Promotions(study.ladder, whole.proposals, whole.results).values()
    else:
        values = {r.ask: r.accuracy or 0.0 for r in reversed(whole.results) if r.is_evaluated}
    told = told_after(whole)
    entries, baseline = [], ()
    for p in whole.proposals:
        own = tuple(
            as_trial(e, study.objectives.objective) for e in whole.evaluations if e.ask == p.ask
        )
        if p.kind == BASELINE:
            baseline = own
        else:
            value, at = values.get(p.ask), told.get(p.ask)
            entries.append(HistoryEntry(p.ask, p.key or "", p.status, value, p.text or "", own, at))
    several = None if study.objectives.are_default else study.objectives
    objective = study.objectives.objective
    has_rungs = study.ladder is not None
    return History(number, tuple(entries), objective, baseline, several, has_rungs)


def told_after(whole: Whole) -> dict[int, int]:
    """Count how many operators were proposed without the first result of each proposal."""
    operators = {p.ask for p in whole.proposals if p.kind != BASELINE}
    seen: list[int] = []  # by each proposal of an operator, in order
    told: dict[int, int] = {}
    for event in whole.events:
        if event.kind == "asked" and event.data["ask"] in operators:
            seen.append(event.data.get("seen", event.sequence - 1))
        elif event.kind == "told":
            told.setdefault(event.data["ask"], event.sequence)
    return {ask: bisect.bisect_left(seen, sequence) for ask, sequence in told.items()}


def without_attempts(records: Sequence[ProposalRecord]) -> list[ProposalRecord]:
    return [dataclasses.replace(record, attempts=0) for record in records]
