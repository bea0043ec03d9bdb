"""The comparison of search methods on a table, with everything that a results file holds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from syno._util.errors import UserError
from syno.store import capture_environment
from syno.store.objective import Objective
from syno_lab.benchmark.noise import noise_of
from syno_lab.benchmark.problem import Problem
from syno_lab.benchmark.scores import MethodComparison, MethodScore, Quartiles, compare, score
from syno_lab.benchmark.simulation import MethodSpec, Progress, replay_all
from syno_lab.benchmark.table import BenchmarkTable


@dataclass(frozen=True)
class SearchResults:
    """Search methods on one table.

    scores: of the methods in the given order; comparisons: of all pairs of them.
    trials, workers, seeds: of the replays.
    """

    problem: Problem
    methods: tuple[MethodSpec, ...]
    scores: tuple[MethodScore, ...]
    comparisons: tuple[MethodComparison, ...]
    trials: int
    workers: int
    seeds: int

    @property
    def table(self) -> BenchmarkTable:
        """The table; with objectives that need a latency, of the operators that have one."""
        return self.problem.table

    @property
    def objective(self) -> Objective:
        """The objective of the table."""
        return self.table.objective

    @property
    def regret_scale(self) -> int:
        """What the regret is multiplied with to be shown: shares are shown in percent."""
        return 100 if self.objective.is_share or not self.problem.is_single else 1

    def described(self) -> dict[str, object]:
        """Return everything as plain values, with the machine; what is infinite is None."""
        noise = noise_of(self.table)
        return {
            "table": {
                "name": self.table.name,
                "operators": len(self.table.rows),
                "trained": len(self.table.numbers),
                "trainings": len(self.table.results),
                "objective": self.objective.name,
                "noise": None if noise is None else dataclasses.asdict(noise),
            },
            "objectives": [str(each) for each in self.problem.objectives.all],
            "constraints": [str(bound) for bound in self.problem.objectives.constraints],
            "trials": self.trials,
            "workers": self.workers,
            "seeds": self.seeds,
            "methods": [
                _method(spec, each) for spec, each in zip(self.methods, self.scores, strict=True)
            ],
            "comparisons": [dataclasses.asdict(each) for each in self.comparisons],
            "environment": dataclasses.asdict(
                capture_environment(threads=1, rules=str(self.table.environment.get("rules", "")))
            ),
        }


def compare_methods(
    table: BenchmarkTable,
    methods: Sequence[MethodSpec],
    *,
    seeds: int = 100,
    trials: int = 400,
    workers: int = 1,
    jobs: int = 1,
    objectives: Sequence[str] = (),
    constraints: Sequence[str] = (),
    progress: Progress | None = None,
) -> SearchResults:
    """Replay search methods on a table and compare them.

    Args:
        table: the operators and their results.
        methods: what to compare.
        seeds: the number of runs of each method.
        trials: the maximum number of trials of a run; not more than the table has operators.
        workers: trials that run at the same time.
        jobs: processes.
        objectives, constraints: as those of `syno.search`. With several objectives or constraints,
            methods are compared by the hypervolume of their archives.
        progress: called with (finished runs, all runs, method).

    Raises:
        UserError: for a table without results, and for unknown methods and options.
    """
    if not table.keys:
        raise UserError(
            f"table '{table.name}' has no results yet\n"
            f"  what to do: `syno bench table --out FILE` trains its {len(table.rows):,} operators"
        )
    problem = Problem.of(table, objectives, constraints)
    trials = min(trials, len(problem.table.keys))
    runs = replay_all(
        problem,
        methods,
        seeds=seeds,
        trials=trials,
        workers=workers,
        jobs=jobs,
        progress=progress,
    )
    scores = [score(problem, title, each, trials=trials) for title, each in runs.items()]
    comparisons = [c for one, other in combinations(scores, 2) for c in compare(one, other, trials)]
    return SearchResults(
        problem, tuple(methods), tuple(scores), tuple(comparisons), trials, workers, seeds
    )


def _method(spec: MethodSpec, found: MethodScore) -> dict[str, object]:
    return {
        "method": found.method,
        "name": spec.name,
        "options": dict(spec.options),
        "hours": found.hours,
        "reach": [
            {
                "share": reach.share,
                "operators": reach.operators,
                **_quartiles(reach.quartiles),
                "missed": reach.missed,
                "trials": [_finite(value) for value in reach.trials],
            }
            for reach in found.reach
        ],
        "regret": {str(n): _quartiles(Quartiles.of(each)) for n, each in found.regret.items()},
        "anytime": [_quartiles(each) for each in found.anytime],
    }


def _quartiles(found: Quartiles) -> dict[str, float | None]:
    return {name: _finite(value) for name, value in dataclasses.asdict(found).items()}


def _finite(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
