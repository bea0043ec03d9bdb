"""What a table of rankings says: how well a cheap training, or a cheap signal, ranks operators."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from syno_lab.experiments.ranking import HIGH, INITIAL, LOW, PLAIN, SCALED, RankingFile

_DRAWS = 2000
_LEAST = 4
# MACs over the original's: bands in which operators cost alike. Together they hold all operators.
BANDS = ((0.0, 0.15), (0.15, 0.3), (0.3, math.inf))
_TOP = 10


@dataclass(frozen=True)
class Correlation:
    """Spearman's, with a 95 % interval by bootstrap over operators; None where there are too few
    operators, or all are alike."""

    name: str
    count: int
    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Arm:
    """Operators trained with one kind of scales: the mean over operators and seeds of their
    accuracy, that of the difference to `scaled` with its standard error over operators, and how
    well two seeds agree."""

    scales: str
    count: int
    accuracy: float
    difference: float
    error: float
    seeds: Correlation


@dataclass(frozen=True)
class Agreement:
    """All figures. recall: of the best ten at the high rung, how many are among the best ten of the
    same operators at the low rung."""

    operators: int
    trained_low: int
    trained_high: int
    failed: int
    seconds_low: float
    seconds_high: float | None
    images: float
    correlations: tuple[Correlation, ...]
    recall: int | None
    arms: tuple[Arm, ...]

    def correlation(self, name: str) -> Correlation:
        """One of them, by name."""
        return next(each for each in self.correlations if each.name == name)


def agreement(table: RankingFile) -> Agreement:
    """Compares what the table has; parts that are not trained yet are left out."""
    first, second = table.accuracies(LOW), table.accuracies(LOW, 1)
    both = {i: (first[i] + second[i]) / 2 for i in first if i in second}
    high = table.accuracies(HIGH)
    entries = table.entries
    losses = {r.operator: -sum(r.losses) for r in table.runs if r.job[1:] == (LOW, SCALED, 0)}
    correlations = [
        spearman("two seeds of the low rung", first, second),
        spearman("low rung, one seed", first, high),
        spearman("low rung, second seed", second, high),
        spearman("low rung, mean of two seeds", both, high),
        spearman("low rung, sum of losses", losses, high),
        spearman("MACs", {i: float(entry.macs) for i, entry in enumerate(entries)}, high),
        spearman("parameters", {i: float(entry.params) for i, entry in enumerate(entries)}, high),
        spearman("best third of the low rung", first, high, best_third(first, high)),
        *(_within(band, table, first, high) for band in BANDS),
        spearman("drawn operators alone", first, high, [i for i in high if not entries[i].name]),
    ]
    settings = table.settings
    low_images, high_images = (
        _images(each, settings.train_images) for each in (settings.low, settings.high)
    )
    return Agreement(
        operators=len(entries),
        trained_low=len(first),
        trained_high=len(high),
        failed=sum(run.accuracy is None for run in table.runs),
        seconds_low=statistics.median(table.seconds(LOW)) if table.seconds(LOW) else 0.0,
        seconds_high=statistics.median(table.seconds(HIGH)) if table.seconds(HIGH) else None,
        images=high_images / low_images,
        correlations=tuple(correlations),
        recall=_recall(first, high),
        arms=tuple(arm for scales in (SCALED, INITIAL, PLAIN) for arm in _arm(table, scales)),
    )


def best_third(low: Mapping[int, float], high: Mapping[int, float]) -> list[int]:
    """Of the operators that both rungs have, the third that the low rung puts first."""
    shared = [i for i in high if i in low]
    return sorted(shared, key=lambda i: -low[i])[: len(shared) // 3]


def _within(
    band: tuple[float, float],
    table: RankingFile,
    first: Mapping[int, float],
    high: Mapping[int, float],
) -> Correlation:
    """How well the low rung ranks operators whose MACs over the convolution's lie in a band."""
    low, below = band
    macs = {i: entry.macs for i, entry in enumerate(table.entries)}
    largest = max((entry.macs for entry in table.entries if entry.name == "conv2d"), default=0)
    among = [i for i in high if largest and low <= macs[i] / largest < below]
    name = f"at least {low:g}" if below == math.inf else f"{low:g} to {below:g}"
    return spearman(f"MACs of {name} of conv2d", first, high, among)


def _images(fidelity: Mapping[str, Any], there_are: int) -> int:
    """Images seen in a training."""
    return int(fidelity["images"] or there_are) * int(fidelity["epochs"])


def spearman(
    name: str,
    one: Mapping[int, float],
    other: Mapping[int, float],
    among: Sequence[int] | None = None,
) -> Correlation:
    """Spearman's rank correlation over what both have (and `among` names)."""
    shared = sorted(i for i in one if i in other and (among is None or i in among))
    a, b = (np.array([values[i] for i in shared]) for values in (one, other))
    value = float(_rank_correlations(a[None], b[None])[0]) if len(shared) >= _LEAST else math.nan
    if math.isnan(value):
        return Correlation(name, len(shared), None)
    picks = np.random.default_rng(0).integers(0, len(shared), (_DRAWS, len(shared)))
    drawn = _rank_correlations(a[picks], b[picks])
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Correlation(name, len(shared), value, float(low), float(high))


def _rank_correlations(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Spearman's of each row of a with that of b; NaN where either is all alike."""
    from scipy.stats import rankdata

    first, second = (rankdata(values, axis=1) for values in (a, b))
    first -= first.mean(axis=1, keepdims=True)
    second -= second.mean(axis=1, keepdims=True)
    scale = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
    product: np.ndarray = (first * second).sum(axis=1)
    return np.divide(product, scale, out=np.full(len(scale), np.nan), where=scale > 0)


def _recall(first: Mapping[int, float], high: Mapping[int, float]) -> int | None:
    shared = [i for i in high if i in first]
    if len(shared) < 2 * _TOP:
        return None
    tops = [set(sorted(shared, key=lambda i: -values[i])[:_TOP]) for values in (first, high)]
    return len(tops[0] & tops[1])


def _arm(table: RankingFile, scales: str) -> list[Arm]:
    seeds = range(table.settings.seeds)
    plain = [table.accuracies(LOW, seed, PLAIN) for seed in seeds]
    ours = [table.accuracies(LOW, seed, scales) for seed in seeds]
    usual = [table.accuracies(LOW, seed) for seed in seeds]
    shared = sorted(i for i in plain[0] if all(i in each for each in [*plain, *ours, *usual]))
    if len(shared) < 4:
        return []
    means = {i: statistics.mean(each[i] for each in ours) for i in shared}
    gaps = [means[i] - statistics.mean(each[i] for each in usual) for i in shared]
    stable = Correlation(scales, len(shared), None)
    if len(ours) > 1:
        stable = spearman(scales, ours[0], ours[1], shared)
    return [
        Arm(
            scales=scales,
            count=len(shared),
            accuracy=statistics.mean(means.values()),
            difference=statistics.mean(gaps),
            error=statistics.stdev(gaps) / len(gaps) ** 0.5,
            seeds=stable,
        )
    ]
