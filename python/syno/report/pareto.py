"""Pareto fronts of accuracy, or loss, against a cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from syno.report.model import Candidate
from syno.store.front import pareto_front
from syno.store.objective import ACCURACY, Objective

_LINEAR_SPREAD = 5.0

Cost = Callable[[Candidate], float | None]


def latency(candidate: Candidate) -> float | None:
    """Return the latency of the network relative to the baseline in the same run.

    A machine that is slow for some time is slow for both networks. Ratios of different runs can
    therefore be compared, and milliseconds cannot.
    """
    return candidate.latency_ratio


def macs(candidate: Candidate) -> float | None:
    """Return the MACs of the replaced layers at batch size 1."""
    return candidate.macs


def front(
    candidates: Iterable[Candidate], cost: Cost, objective: Objective = ACCURACY
) -> list[Candidate]:
    """Return the Pareto front of candidates, the cheapest first.

    A candidate beats another if it costs no more and is at least as good, and is better in one of
    the two. Of equal candidates, the first proposal is kept. Candidates without a result or a cost
    are omitted.
    """
    return pareto_front(
        (spent, objective.score(value), c.number, c)
        for c in candidates
        if (value := getattr(c, objective.field)) is not None and (spent := cost(c)) is not None
    )


def staircase(points: list[tuple[float, float]], right: float) -> tuple[list[float], list[float]]:
    """Return the corners of the step line through `points`, extended to cost `right`.

    Points are (cost, quality). Between two points of a front, the worse quality is available, so
    the line first goes to the right and then to the better quality.
    """
    xs: list[float] = []
    ys: list[float] = []
    for x, y in points:
        if xs:
            xs.append(x)
            ys.append(ys[-1])
        xs.append(x)
        ys.append(y)
    if xs and right > xs[-1]:
        xs.append(right)
        ys.append(ys[-1])
    return xs, ys


def axis_ticks(costs: list[float]) -> list[float] | None:
    """Return ticks of a logarithmic axis (1, 2, 5, ...) if the costs differ more than five times.

    Returns None if a linear axis is suitable.
    """
    known = [cost for cost in costs if cost > 0]
    if not known or max(known) <= _LINEAR_SPREAD * min(known):
        return None
    low = math.floor(math.log10(min(known)))
    high = math.ceil(math.log10(max(known)))
    spread = max(known) / min(known)
    # As many labels as fit next to each other on a phone.
    steps = (1, 2, 5) if spread <= 30 else (1, 3) if spread <= 1000 else (1,)
    ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
    return [tick for tick in ticks if min(known) / 2 <= tick <= max(known) * 2]
