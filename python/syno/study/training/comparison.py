"""Results of several seeds: mean, spread, and pairs with the original network's."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (of the sample; None for one value) of some values."""

    mean: float
    deviation: float | None
    count: int

    @staticmethod
    def of(values: Sequence[float]) -> Spread | None:
        """None for no values."""
        if not values:
            return None
        deviation = statistics.stdev(values) if len(values) > 1 else None
        return Spread(statistics.fmean(values), deviation, len(values))


@dataclass(frozen=True)
class Paired:
    """Differences from the original network, seed by seed.

    low, high: the interval that holds the mean difference with 95 % probability by Student's t;
    None for one pair.    wins: seeds in which the operator is better.
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
    """Compares the seeds that both have; None where there is none."""
    seeds = sorted(set(values) & set(originals))
    differences = [values[seed] - originals[seed] for seed in seeds]
    spread = Spread.of(differences)
    if spread is None:
        return None
    sign = 1 if greater_is_better else -1
    wins = sum(sign * difference > 0 for difference in differences)
    if spread.deviation is None:
        return Paired(spread.mean, None, None, None, wins, spread.count)
    reach = student(spread.count - 1) * spread.deviation / math.sqrt(spread.count)
    return Paired(
        spread.mean, spread.deviation, spread.mean - reach, spread.mean + reach, wins, spread.count
    )


def student(degrees: int) -> float:
    """The 97.5 % quantile of Student's t."""
    from scipy.stats import t

    return float(t.ppf(0.975, degrees))
