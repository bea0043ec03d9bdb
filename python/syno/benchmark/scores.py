"""Figures of merit of replays: trials until a good operator, regret, and tests between methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from syno.benchmark.simulation import Replay, Step
from syno.benchmark.table import Table

# The shares of operators that a search must reach, and the numbers of trials of the regret.
SHARES = (0.01, 0.002)
REGRET_TRIALS = (50, 100, 200)


@dataclass(frozen=True)
class Quartiles:
    """Median and quartiles over the seeds; infinity where that share of runs never got there."""

    low: float
    median: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Quartiles:
        """Compute them as order statistics, so that infinite values are allowed."""
        ordered = sorted(values)
        return Quartiles(*(ordered[round(q * (len(ordered) - 1))] for q in (0.25, 0.5, 0.75)))


@dataclass(frozen=True)
class Reach:
    """Trials until one of the best operators was evaluated.

    share: of the operators that count as the best; operators: their number.
    trials: by seed, finished trials up to and with the first of them; infinity if none was.
    missed: the number of runs without one.
    """

    share: float
    operators: int
    trials: tuple[float, ...]

    @property
    def quartiles(self) -> Quartiles:
        """Over the seeds."""
        return Quartiles.of(self.trials)

    @property
    def missed(self) -> int:
        """The number of runs that evaluated none of the best operators."""
        return sum(map(math.isinf, self.trials))


@dataclass(frozen=True)
class MethodScore:
    """The figures of one method.

    regret: by number of trials, for each seed: the best true score of the table minus the true
        score of the operator with the best result so far.
    anytime: the quartiles of the regret after each trial.
    hours: the median simulated time of a run in hours.
    """

    method: str
    reach: tuple[Reach, ...]
    regret: Mapping[int, tuple[float, ...]]
    anytime: tuple[Quartiles, ...]
    hours: float


@dataclass(frozen=True)
class Comparison:
    """Two methods compared by their trials until the best `share`.

    ratio: the median of the first divided by that of the second; None without finite medians.
    wilcoxon: the p-value of the signed-rank test on pairs of equal seeds.
    mann_whitney: the p-value of the rank-sum test. Both are two-sided; a run that never got there
        counts as one that needs more trials than any other.
    """

    first: str
    second: str
    share: float
    ratio: float | None
    wilcoxon: float
    mann_whitney: float


def trials_to(steps: Sequence[Step], keys: frozenset[str]) -> float:
    """Count the finished trials up to and with the first of these operators."""
    return next((float(n) for n, step in enumerate(steps, 1) if step.key in keys), math.inf)


def regret_curve(steps: Sequence[Step], best: float) -> list[float]:
    """Return the regret after each trial.

    It is infinite while every trial failed. The operator with the best result is the one that a
    search would return; its result contains the noise of one training.
    """
    found, seen, regret = [], -math.inf, math.inf
    for step in steps:
        if step.value is not None and step.value > seen:
            seen, regret = step.value, best - step.score
        found.append(regret)
    return found


def score(
    table: Table,
    method: str,
    runs: Sequence[Replay],
    *,
    trials: int,
    shares: Sequence[float] = SHARES,
    regret_trials: Sequence[int] = REGRET_TRIALS,
) -> MethodScore:
    """Compute the figures of one method from its runs.

    Args:
        table: the table of the runs.
        method: the name in the result.
        runs: one for each seed.
        trials: the limit of the runs; a run that ended earlier keeps its last regret.
        shares, regret_trials: what to report.
    """
    best = table.scores[table.ranking[0]]
    reach = []
    for share in shares:
        keys = frozenset(table.best(share))
        reach.append(Reach(share, len(keys), tuple(trials_to(run.steps, keys) for run in runs)))
    curves = np.full((len(runs), trials), math.inf)
    for row, run in zip(curves, runs, strict=True):
        curve = regret_curve(run.steps, best)
        row[: len(curve)] = curve
        row[len(curve) :] = curve[-1] if curve else math.inf
    regret = {n: tuple(map(float, curves[:, n - 1])) for n in regret_trials if n <= trials}
    anytime = tuple(Quartiles.of(list(map(float, column))) for column in curves.T)
    ends = [run.steps[-1].ended_s if run.steps else 0.0 for run in runs]
    return MethodScore(method, tuple(reach), regret, anytime, float(np.median(ends)) / 3600)


def compare(first: MethodScore, second: MethodScore, limit: int) -> list[Comparison]:
    """Compare two methods at every share."""
    found = []
    for one, other in zip(first.reach, second.reach, strict=True):
        a = np.minimum(one.trials, limit + 1)
        b = np.minimum(other.trials, limit + 1)
        medians = one.quartiles.median, other.quartiles.median
        same = bool(np.all(a == b))
        found.append(
            Comparison(
                first.method,
                second.method,
                one.share,
                medians[0] / medians[1] if all(map(math.isfinite, medians)) else None,
                1.0 if same else float(stats.wilcoxon(a, b, zero_method="zsplit").pvalue),
                1.0 if same else float(stats.mannwhitneyu(a, b).pvalue),
            )
        )
    return found
