"""Comparison of results over several seeds: mean, spread, and differences from the baseline."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation of some values; the deviation of one value is None."""

    mean: float
    deviation: float | None
    count: int

    @staticmethod
    def of(values: Sequence[float]) -> Spread | None:
        """Compute the spread of some values; None without values."""
        if not values:
            return None
        deviation = statistics.stdev(values) if len(values) > 1 else None
        return Spread(statistics.fmean(values), deviation, len(values))


@dataclass(frozen=True)
class Paired:
    """The difference from the original network, over pairs of trainings with equal seeds.

    low, high: the 95 % confidence interval of the mean difference by Student's t; None for one
        pair.
    wins: the number of seeds with which the operator is better.
    """

    difference: float
    deviation: float | None
    low: float | None
    high: float | None
    wins: int
    count: int


def paired(
    values: Mapping[int, float], originals: Mapping[int, float], *, greater_is_better: bool = True
) -> Paired | None:
    """Compare the values of the seeds that both have; None without such a seed."""
    seeds = sorted(set(values) & set(originals))
    differences = [values[seed] - originals[seed] for seed in seeds]
    spread = Spread.of(differences)
    if spread is None:
        return None
    sign = 1 if greater_is_better else -1
    wins = sum(sign * difference > 0 for difference in differences)
    if spread.deviation is None:
        return Paired(spread.mean, None, None, None, wins, spread.count)
    margin = student(spread.count - 1) * spread.deviation / math.sqrt(spread.count)
    return Paired(
        spread.mean,
        spread.deviation,
        spread.mean - margin,
        spread.mean + margin,
        wins,
        spread.count,
    )


def student(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t distribution."""
    from scipy.stats import t

    return float(t.ppf(0.975, degrees))
