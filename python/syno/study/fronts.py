"""The trials of a study that no other one beats, and whose weights are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syno.store import Evaluation, StudySummary
from syno.store.front import pareto_front
from syno.store.overview import best_of, score

LATENCY, MACS, PARAMS = "latency", "macs", "params"
# What a front may be drawn against, and what a candidate needs in a slot; with fields of
# `Evaluation`.
COSTS: Mapping[str, str] = {LATENCY: "latency_ratio", MACS: "macs", PARAMS: "params"}


def front_of(summary: StudySummary, trials: Sequence[Evaluation], cost: str) -> list[Evaluation]:
    """The trials that no other one beats, the cheapest first; cost: one of `COSTS`."""
    return pareto_front(
        (float(spent), summary.objective.score(value), trial.ask, trial)
        for trial in trials
        if (spent := getattr(trial, COSTS[cost])) is not None
        and (value := summary.quality(trial)) is not None
    )


def wanted_weights(summary: StudySummary, *, every: bool = False) -> list[tuple[str | None, int]]:
    """List the trials whose weights are kept, as pairs (key, seed), the most important first.

    These are the baseline, and then, from the best to the worst, the best operator and the trials
    on a front of the operators alone: one that the baseline beats may be the best that there is.

    Args:
        summary: the study.
        every: whether all trained operators are kept, on a front or not.
    """
    fronts = {t.ask for cost in COSTS for t in front_of(summary, summary.compared, cost)}
    best = best_of(summary)
    fronts |= set() if best is None else {best.ask}
    found = [trial for trial in summary.compared if every or trial.ask in fronts]
    found.sort(key=lambda trial: (-score(summary, trial), trial.ask))
    return [(trial.key, trial.seed) for trial in (*summary.baselines, *found)]
