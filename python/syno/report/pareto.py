"""Pareto fronts of accuracy, or loss, against a cost. The baseline is a point like any other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from syno.report.model import Baseline, OperatorRow, Report
from syno.store.front import pareto_front

_LINEAR_SPREAD = 5.0

Point = OperatorRow | Baseline
Cost = Callable[[Point], float | None]
_FIRST = -1  # the number of the baseline, which is evaluated before all proposals


def latency(point: Point) -> float | None:
    """Return the latency of the network relative to the baseline in the same run.

    A machine that is slow for some time is slow for both networks. Ratios of different runs can
    therefore be compared, and milliseconds cannot.
    """
    return 1.0 if isinstance(point, Baseline) else point.latency_ratio


def macs(point: Point) -> float | None:
    """Return the MACs of the replaced layers at batch size 1."""
    return point.macs


def front(report: Report, cost: Cost) -> list[Point]:
    """Return the Pareto front of the baseline and the trained operators, the cheapest first.

    A point beats another if it costs no more and is at least as good, and is better in one of the
    two. Of equal points, the baseline is kept, or else the first proposal. Points without a result
    or a cost are omitted.
    """
    points: list[Point] = [report.baseline, *report.trained]
    return pareto_front(
        (spent, score, getattr(point, "number", _FIRST), point)
        for point in points
        if (score := report.score(point)) is not None and (spent := cost(point)) is not None
    )


def on_front(report: Report, *costs: Cost) -> list[OperatorRow]:
    """Return the operators on one of the fronts by the costs, by default latency and MACs.

    They are ordered by front, the cheapest first. Without any, no operator beats the baseline.
    """
    points = [point for cost in costs or (latency, macs) for point in front(report, cost)]
    found = {point.number: point for point in points if isinstance(point, OperatorRow)}
    return list(found.values())


@dataclass(frozen=True)
class FrontPlot:
    """What a plot of the objective against a cost shows, without the baseline.

    shown: the trained operators with the cost; points: those of the front, the baseline included;
    others: the operators that are not on it. line: the front as a line, in places on the axis.
    ticks: as in `axis_ticks`.
    """

    shown: list[OperatorRow]
    points: list[Point]
    others: list[OperatorRow]
    line: tuple[list[float], list[float]]
    ticks: list[float] | None


def front_plot(report: Report, cost: Cost, at: Callable[[float], float]) -> FrontPlot:
    """Arrange the plot of a front; `at`: the place of a cost on the axis."""
    shown = [c for c in report.trained if cost(c) is not None]
    points = front(report, cost)
    numbers = {c.number for c in points if isinstance(c, OperatorRow)}
    base = cost(report.baseline)
    spent = [cost(c) or 0.0 for c in shown] + ([base] if base is not None else [])
    steps = [(cost(c) or 0.0, report.quality(c) or 0.0) for c in points]
    xs, ys = staircase(steps, max(spent)) if shown else ([], [])
    return FrontPlot(
        shown,
        points,
        [c for c in shown if c.number not in numbers],
        ([at(x) for x in xs], ys),
        axis_ticks([at(x) for x in spent]),
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
