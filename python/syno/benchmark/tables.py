"""Results of replays as tables of text."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

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


def _reached(place: int, limit: int):  # type: ignore[no-untyped-def]
    def cell(each: MethodScore) -> str:
        reach = each.reach[place]
        text = _range(reach.quartiles, lambda x: f"{x:.0f}" if x < math.inf else f">{limit}")
        return text + (f", {reach.missed} never" if reach.missed else "")

    return cell


def _regret(found: SearchResults, count: int):  # type: ignore[no-untyped-def]
    scale = 100 if found.objective.is_share else 1

    def cell(each: MethodScore) -> str:
        quartiles = Quartiles.of(each.regret[count])
        return _range(
            quartiles, lambda x: f"{scale * x:.2f}" if x < math.inf else fmt.MISSING
        )

    return cell


def _range(found: Quartiles, shown) -> str:  # type: ignore[no-untyped-def]
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


def summary(table: Table) -> list[str]:
    """Describe a table in a few lines: how much of it is trained, its spread and its noise."""
    noise = noise_of(table)
    done, count = len(table.numbers), len(table.rows)
    lines = [f"{table.name}: {done:,} of {count:,} operators trained, {len(table.results):,} trainings"]
    good = [value for value in table.scores.values() if value > -math.inf]
    show = table.objective.shown
    sign = table.objective.score
    if good:
        low, *_, high = statistics.quantiles(good, n=20) if len(good) > 1 else (good[0], good[0])
        lines.append(
            f"{table.objective.name}: best {show(sign(max(good)))}, 95 % below "
            f"{show(sign(high))}, 5 % below {show(sign(low))}, worst {show(sign(min(good)))}"
        )
    originals = [table.objective.of(r.accuracy, {"loss": r.loss}) for r in table.baseline_trials()]
    values = [value for value in originals if value is not None]
    if values:
        lines.append(f"original network: {show(statistics.fmean(values))} ({len(values)} seeds)")
    if noise is not None:
        lines.append(
            f"noise of one training: {table.objective.spread(noise.deviation)}; two seeds agree "
            f"with a Spearman correlation of {noise.spearman:.3f} ({noise.operators} operators)"
        )
    failed = sum(result.accuracy is None for result in table.results)
    if failed:
        lines.append(f"{failed} trainings failed")
    return lines
