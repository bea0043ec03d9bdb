"""Figures of merit of replays: trials until a good operator, regret, and tests between methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from syno_lab.benchmark.problem import Problem, as_problem
from syno_lab.benchmark.simulation import MethodReplay
from syno_lab.benchmark.table import BenchmarkTable

# The numbers of trials of the regret.
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
    """Trials until one of the best operators was evaluated, or so much of the hypervolume found.

    share: of the operators that count as the best, or of the hypervolume of all operators.
    operators: the number of the best operators; None for a hypervolume.
    trials: by seed, finished trials up to and with the first of them; infinity if none was.
    missed: the number of runs that did not get there.
    """

    share: float
    operators: int | None
    trials: tuple[float, ...]

    @property
    def quartiles(self) -> Quartiles:
        """Over the seeds."""
        return Quartiles.of(self.trials)

    @property
    def missed(self) -> int:
        """The number of runs that did not get there."""
        return sum(map(math.isinf, self.trials))


@dataclass(frozen=True)
class MethodScore:
    """The figures of one method.

    regret: by number of trials, for each seed: the best true score of the table minus the true
        score of the operator with the best result so far; with several objectives, the share of the
        hypervolume of the whole table that is missing.
    anytime: the quartiles of the regret after each trial.
    hours: the median simulated time of a run in hours.
    """

    method: str
    reach: tuple[Reach, ...]
    regret: Mapping[int, tuple[float, ...]]
    anytime: tuple[Quartiles, ...]
    hours: float


@dataclass(frozen=True)
class MethodComparison:
    """Two methods compared by one figure, of which less is better.

    figure: `reach`, the trials until a share is reached, or `regret`.
    at: the share, or the number of trials after which the regret is compared.
    ratio: the median of the first divided by that of the second; None if one is not finite, or 0.
    wilcoxon: the p-value of the signed-rank test on pairs of equal seeds.
    mann_whitney: the p-value of the rank-sum test. Both are two-sided; a run that never got there
        counts as one that needs more trials than any other.
    """

    first: str
    second: str
    figure: str
    at: float
    ratio: float | None
    wilcoxon: float
    mann_whitney: float


def score(
    table: BenchmarkTable | Problem,
    method: str,
    runs: Sequence[MethodReplay],
    *,
    trials: int,
    shares: Sequence[float] | None = None,
    regret_trials: Sequence[int] = REGRET_TRIALS,
) -> MethodScore:
    """Compute the figures of one method from its runs.

    Args:
        table: the table of the runs, with their objectives if these are not that of the table.
        method: the name in the result.
        runs: one for each seed.
        trials: the limit of the runs; a run that ended earlier keeps its last regret.
        shares, regret_trials: what to report. Default: the best 1 % and 0.2 % of the operators, or
            90 % and 98 % of the hypervolume.
    """
    problem = as_problem(table)
    curves = np.full((len(runs), trials), math.inf)
    reached: dict[float, list[float]] = {share: [] for share in shares or problem.shares}
    for row, run in zip(curves, runs, strict=True):
        curve = problem.regret(run.steps)
        row[: len(curve)] = curve
        row[len(curve) :] = curve[-1] if curve else math.inf
        for share, found in reached.items():
            found.append(problem.reach(run.steps, curve, share))
    reach = [
        Reach(share, problem.operators(share), tuple(found)) for share, found in reached.items()
    ]
    regret = {n: tuple(map(float, curves[:, n - 1])) for n in regret_trials if n <= trials}
    anytime = tuple(Quartiles.of(list(map(float, column))) for column in curves.T)
    ends = [run.steps[-1].ended_s if run.steps else 0.0 for run in runs]
    return MethodScore(method, tuple(reach), regret, anytime, float(np.median(ends)) / 3600)


def compare(first: MethodScore, second: MethodScore, limit: int) -> list[MethodComparison]:
    """Compare two methods by every figure.

    Args:
        first, second: of runs with equal seeds.
        limit: the maximum number of trials of the runs.
    """
    pairs: list[tuple[str, float, Sequence[float], Sequence[float]]] = [
        ("reach", one.share, one.trials, other.trials)
        for one, other in zip(first.reach, second.reach, strict=True)
    ]
    pairs += [("regret", n, first.regret[n], second.regret[n]) for n in first.regret]
    found = []
    for figure, at, one, other in pairs:
        medians = Quartiles.of(one).median, Quartiles.of(other).median
        is_ratio = all(map(math.isfinite, medians)) and medians[1] > 0
        a, b = np.minimum(one, limit + 1), np.minimum(other, limit + 1)
        same = bool(np.all(a == b))
        found.append(
            MethodComparison(
                first.method,
                second.method,
                figure,
                at,
                medians[0] / medians[1] if is_ratio else None,
                1.0 if same else float(stats.wilcoxon(a, b, zero_method="zsplit").pvalue),
                1.0 if same else float(stats.mannwhitneyu(a, b).pvalue),
            )
        )
    return found
