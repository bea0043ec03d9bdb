"""Results of replays as tables of text."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from syno._util import numbers as fmt
from syno._util.tables import Table as TextTable
from syno_lab.benchmark.experiment import SearchResults
from syno_lab.benchmark.noise import noise_of, orbit_noise_of
from syno_lab.benchmark.scores import MethodScore, Quartiles
from syno_lab.benchmark.table import BenchmarkTable

# The methods that others are compared with.
REFERENCES = ("uniform", "tree", "local", "largest")


def scores_table(found: SearchResults) -> TextTable:
    """Return a row for each method: trials until a share is reached, and regret."""
    shares = [reach.share for reach in found.scores[0].reach]
    counts = sorted(found.scores[0].regret)
    reached = "trials to the best {:.1%}>"
    if not found.problem.is_single:
        reached = "trials to {:.0%} of the hypervolume>"
    return TextTable.of(
        found.scores,
        ("method", lambda each: each.method),
        *((reached.format(share), _reached(n, found.trials)) for n, share in enumerate(shares)),
        *((f"regret after {n}>", _regret(found, n)) for n in counts),
    )


def _reached(place: int, limit: int) -> Callable[[MethodScore], str]:
    def cell(each: MethodScore) -> str:
        reach = each.reach[place]
        text = _range(reach.quartiles, lambda x: f"{x:.0f}" if x < math.inf else f">{limit}")
        return text + (f", {reach.missed} never" if reach.missed else "")

    return cell


def _regret(found: SearchResults, count: int) -> Callable[[MethodScore], str]:
    scale = found.regret_scale

    def cell(each: MethodScore) -> str:
        quartiles = Quartiles.of(each.regret[count])
        return _range(quartiles, lambda x: f"{scale * x:.2f}" if x < math.inf else fmt.MISSING)

    return cell


def _range(found: Quartiles, shown: Callable[[float], str]) -> str:
    return f"{shown(found.median)} ({shown(found.low)} to {shown(found.high)})"


def comparisons_table(found: SearchResults) -> TextTable:
    """Return a row for each figure of each method, compared with each of the references.

    The references are those of `REFERENCES` that were replayed; without one, the first method.
    """
    names = {spec.title: spec.name for spec in found.methods}
    titles = list(names)
    references = [t for t in titles if names[t] in REFERENCES] or titles[:1]
    by_pair = {(c.first, c.second, c.figure, c.at): c for c in found.comparisons}
    figures = list(dict.fromkeys((c.figure, c.at) for c in found.comparisons))
    rows = [
        (title, figure, at)
        for title in titles
        if any(title != reference for reference in references)
        for figure, at in figures
    ]

    def cell(reference: str) -> Callable[[tuple[str, str, float]], str]:
        def shown(row: tuple[str, str, float]) -> str:
            title, figure, at = row
            if title == reference:
                return ""
            pair = by_pair.get((title, reference, figure, at))
            turned = by_pair.get((reference, title, figure, at))
            own = pair or turned
            if own is None:
                return fmt.MISSING
            ratio = own.ratio
            if pair is None and ratio is not None:
                ratio = 1 / ratio if ratio > 0 else None
            return f"{fmt.MISSING if ratio is None else f'{ratio:.2f}'} (p {own.wilcoxon:.2g})"

        return shown

    return TextTable.of(
        rows,
        ("method", lambda row: row[0]),
        ("figure", lambda row: _figure(found, row[1], row[2])),
        *((f"/ {reference}>", cell(reference)) for reference in references),
    )


def _figure(found: SearchResults, figure: str, at: float) -> str:
    if figure == "regret":
        return f"regret after {at:.0f}"
    return f"best {at:.1%}" if found.problem.is_single else f"{at:.0%} of the hypervolume"


@dataclass(frozen=True)
class ScoreRange:
    """The true values of the trained operators: best, worst, and the 95th and 5th percentile."""

    best: float
    high: float
    low: float
    worst: float


def spread_of(table: BenchmarkTable) -> ScoreRange | None:
    """Compute the spread in the unit of the objective; None if fewer than two operators count."""
    good = [value for value in table.scores.values() if value > -math.inf]
    if len(good) < 2:
        return None
    low, *_, high = statistics.quantiles(good, n=20)
    sign = table.objective.score
    return ScoreRange(sign(max(good)), sign(high), sign(low), sign(min(good)))


def described(table: BenchmarkTable) -> dict[str, object]:
    """Return how much of a table is done, its spread and its noise, as plain values."""
    noise, spread, orbits = noise_of(table), spread_of(table), orbit_noise_of(table)
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
        "symmetries": list(table.configuration.symmetries),
        "orbits": len(table.orbits) or None,
        "trained_orbits": len(table.trained_orbits) or None,
        "orbit_noise": None if orbits is None else dataclasses.asdict(orbits),
        "original": _original(table),
        "environment": dict(table.environment),
    }


def summary(table: BenchmarkTable) -> list[str]:
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
    lines += _orbit_lines(table)
    failed = sum(result.accuracy is None for result in table.results)
    if failed:
        lines.append(f"failed trainings: {failed:,}")
    return lines


def _orbit_lines(table: BenchmarkTable) -> list[str]:
    if not table.orbits:
        return []
    names, shown = ", ".join(table.configuration.symmetries), table.objective.spread
    lines = [
        f"{len(table.orbits):,} orbits under {names}; operators of {len(table.trained_orbits):,} "
        "are trained"
    ]
    found = orbit_noise_of(table)
    if found is not None:
        seeds = "" if found.seeds is None else f", two seeds of one by {shown(found.seeds)}"
        lines.append(
            f"two operators of one orbit differ by {shown(found.within)} on average ({found.pairs} "
            f"pairs){seeds}, and two of different orbits by {shown(found.between)}"
        )
    return lines


def _original(table: BenchmarkTable) -> float | None:
    """Return the mean of the original network over its seeds."""
    found = [table.value(result) for result in table.baseline_trials()]
    values = [value for value in found if value is not None]
    return statistics.fmean(values) if values else None
