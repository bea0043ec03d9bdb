"""Ratings of operators: one number for each, by all objectives of the study."""

from __future__ import annotations

from collections.abc import Iterable

from syno.store import Evaluation, Outcome
from syno.store.objectives import Objectives, ranks
from syno.store.records import BASELINE, OK, OPERATOR, Environment


def rated(
    objectives: Objectives, evaluations: Iterable[Evaluation], rungs: int
) -> dict[int, float]:
    """Rate each operator from 0 to 1, by the number of its proposal.

    Without a ladder, the rating is the rank of `objectives.ranks`. At the rungs of a ladder, it is
    (r + rank) / rungs, where r is the highest rung at which the operator has a result, and the rank
    is that among the results of this rung.

    Args:
        objectives: of the study.
        evaluations: of the study.
        rungs: the number of rungs.
    """
    by_rung: list[dict[int, Evaluation | None]] = [{} for _ in range(rungs)]
    for each in evaluations:
        if each.kind != BASELINE and each.is_evaluated and each.rung_index < rungs:
            by_rung[each.rung_index].setdefault(each.ask, each if each.status == OK else None)
    found: dict[int, float] = {}
    for rung, results in enumerate(by_rung):
        for ask, rank in ranks(objectives, results).items():
            if results[ask] is None:
                found.setdefault(ask, 0.0)
            else:
                found[ask] = (rung + rank) / rungs
    return found


def as_result(ask: int, outcome: Outcome) -> Evaluation:
    """Return an outcome as the evaluation that the store would make of it."""
    timed = outcome.measurement
    return Evaluation(
        ask=ask,
        kind=OPERATOR,
        key=None,
        text=None,
        status=outcome.status,
        reason=outcome.reason,
        accuracy=outcome.accuracy,
        split=outcome.split,
        rung=outcome.rung,
        recipe=outcome.recipe,
        seed=outcome.seed,
        macs=outcome.macs,
        params=outcome.params,
        primitives=outcome.primitives,
        latency_ms=None if timed is None else timed.median_ms,
        latency_spread_ms=None if timed is None else timed.spread_ms,
        latency_ratio=None if timed is None else timed.ratio,
        baseline_latency_ms=None,
        source_hash=None,
        seconds=outcome.seconds,
        finished="",
        environment=Environment("", "", {}, "", 1, ""),
        details=outcome.details,
    )
