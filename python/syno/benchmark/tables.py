"""Results of replays as tables of text."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from syno._util import numbers as fmt
from syno._util.tables import Table as TextTable
from syno.benchmark.experiment import SearchResults
from syno.benchmark.noise import noise_of
from syno.benchmark.scores import Comparison, MethodScore, Quartiles
from syno.benchmark.table import Table


def scores_table(found: SearchResults) -> TextTable:
    """Return a row for each method: trials until the best operators, and regret."""
    shares = [reach.share for reach in found.scores[0].reach]
    counts = sorted(found.scores[0].regret)
    return TextTable.of(
        found.scores,
        ("method", lambda each: each.method),
        *(
            (f"trials to the best {share:.1%}>", _reached(n, found.trials))
            for n, share in enumerate(shares)
        ),
        *((f"regret after {n}>", _regret(found, n)) for n in counts),
    )


def _reached(place: int, limit: int) -> Callable[[MethodScore], str]:
    def cell(each: MethodScore) -> str:
        reach = each.reach[place]
        text = _range(reach.quartiles, lambda x: f"{x:.0f}" if x < math.inf else f">{limit}")
        return text + (f", {reach.missed} never" if reach.missed else "")

    return cell


def _regret(found: SearchResults, count: int) -> Callable[[MethodScore], str]:
    scale = 100 if found.objective.is_share else 1

    def cell(each: MethodScore) -> str:
        quartiles = Quartiles.of(each.regret[count])
        return _range(quartiles, lambda x: f"{scale * x:.2f}" if x < math.inf else fmt.MISSING)

    return cell


def _range(found: Quartiles, shown: Callable[[float], str]) -> str:
    return f"{shown(found.median)} ({shown(found.low)} to {shown(found.high)})"


def comparisons_table(found: Sequence[Comparison]) -> TextTable:
    """Return a row for each pair of methods and each share."""
    return TextTable.of(
        found,
        ("methods", lambda each: f"{each.first} / {each.second}"),
        ("best>", lambda each: f"{each.share:.1%}"),
        ("ratio of medians>", lambda e: fmt.MISSING if e.ratio is None else f"{e.ratio:.2f}"),
        ("Wilcoxon p>", lambda each: f"{each.wilcoxon:.2g}"),
        ("Mann-Whitney p>", lambda each: f"{each.mann_whitney:.2g}"),
    )


@dataclass(frozen=True)
class Spread:
    """The true values of the trained operators: best, worst, and the 95th and 5th percentile."""

    best: float
    high: float
    low: float
    worst: float


def spread_of(table: Table) -> Spread | None:
    """Compute the spread in the unit of the objective; None if fewer than two operators count."""
    good = [value for value in table.scores.values() if value > -math.inf]
    if len(good) < 2:
        return None
    low, *_, high = statistics.quantiles(good, n=20)
    sign = table.objective.score
    return Spread(sign(max(good)), sign(high), sign(low), sign(min(good)))


def described(table: Table) -> dict[str, object]:
    """Return how much of a table is done, its spread and its noise, as plain values."""
    noise, spread = noise_of(table), spread_of(table)
    return {
        "name": table.name,
        "operators": len(table.rows),
        "trained": len(table.numbers),
        "trainings": len(table.results),
        "failures": sum(result.accuracy is None for result in table.results),
        "latencies": len(table.latencies),
        "seconds": round(sum(result.seconds for result in table.results), 1),
        "objective": table.objective.name,
        "spread": None if spread is None else dataclasses.asdict(spread),
        "noise": None if noise is None else dataclasses.asdict(noise),
        "original": _original(table),
        "environment": dict(table.environment),
    }


def summary(table: Table) -> list[str]:
    """Describe a table in a few lines: how much of it is trained, its spread and its noise."""
    noise, spread, original = noise_of(table), spread_of(table), _original(table)
    show = table.objective.shown
    lines = [
        f"{table.name}: {len(table.numbers):,} of {len(table.rows):,} operators trained, "
        f"{len(table.results):,} trainings"
    ]
    if spread is not None:
        lines.append(
            f"{table.objective.name}: best {show(spread.best)}, nineteen of twenty worse than "
            f"{show(spread.high)}, one of twenty worse than {show(spread.low)}, worst "
            f"{show(spread.worst)}"
        )
    if original is not None:
        lines.append(f"original network: {show(original)}")
    if noise is not None:
        lines.append(
            f"noise of one training: {table.objective.spread(noise.deviation)}; two seeds agree "
            f"with a rank correlation of {noise.spearman:.3f} ({noise.operators} operators)"
        )
    failed = sum(result.accuracy is None for result in table.results)
    if failed:
        lines.append(f"failed trainings: {failed:,}")
    return lines


def _original(table: Table) -> float | None:
    """Return the mean of the original network over its seeds."""
    found = [table.objective.of(r.accuracy, {"loss": r.loss}) for r in table.baseline_trials()]
    values = [value for value in found if value is not None]
    return statistics.fmean(values) if values else None
