"""What replays look for in a table: its best operators, or with several objectives its front.

                 one objective                          several objectives, or constraints
rating           the accuracy, or the rank of the loss  the rank by all objectives
regret           the best true score, minus that of     the share of the hypervolume of all
                 the operator with the best result      operators that the archive lacks
reach            one of the best operators is found     so much of that hypervolume is found
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.store.hypervolume import hypervolume
from syno.store.objectives import Objectives, parse_objectives, ranks
from syno.store.records import OK
from syno.study.methods.history import Trial
from syno_lab.benchmark.table import BenchmarkTable

if TYPE_CHECKING:
    from syno_lab.benchmark.step import ReplayStep

# The shares of operators that a search must reach, and those of the hypervolume.
SHARES = (0.01, 0.002)
VOLUMES = (0.9, 0.98)


@dataclass(frozen=True)
class Problem:
    """A table and the objectives by which replays on it are judged."""

    table: BenchmarkTable
    objectives: Objectives

    @staticmethod
    def of(
        table: BenchmarkTable, texts: Sequence[str] = (), constraints: Sequence[str] = ()
    ) -> Problem:
        """Read objectives and constraints as those of a search.

        Operators without a measure that they name are left out of the table, and those whose MACs
        or parameters violate a constraint, which a search does not propose.

        Raises:
            UserError: for unknown measures, and if the table has no operator left.
        """
        objectives = parse_objectives(texts, constraints, table.objective)
        named = objectives.measures
        if any(name.startswith("latency") for name in named):
            timed = {latency.operator for latency in table.latencies if latency.ms is not None}
            table = table.restricted(n for n in table.numbers.values() if n in timed)
            if not timed:
                raise UserError(
                    f"table '{table.name}' has no latencies\n"
                    "  what to do: `syno bench table --out FILE --latency` measures them"
                )
        if "memory" in named:
            raise UserError(
                "a table holds no memory\n"
                f"  expected: {table.objective.name}, macs, params, latency_ms or latency_ratio"
            )
        if objectives.limit_costs:
            rows = {number: table.rows[number] for number in table.numbers.values()}
            allowed = objectives.known_before_training
            table = table.restricted(n for n, row in rows.items() if allowed(row.macs, row.params))
            if rows and not table.keys:
                raise UserError(
                    f"none of {len(rows):,} operators of table '{table.name}' satisfies the "
                    f"constraints {', '.join(map(str, objectives.constraints))}"
                )
        return Problem(table, objectives)

    @property
    def is_single(self) -> bool:
        """Whether the objective of the table is all there is."""
        return self.objectives.are_default

    @property
    def has_ranks(self) -> bool:
        """Whether ratings are ranks, which change with every result."""
        return not (self.is_single and self.objectives.objective.is_share)

    @property
    def shares(self) -> tuple[float, ...]:
        """What `reach` is reported for."""
        return SHARES if self.is_single else VOLUMES

    def operators(self, share: float) -> int | None:
        """Return the number of the best operators; None if the share is of a hypervolume."""
        return len(self.table.best(share)) if self.is_single else None

    def ratings(self, trials: Mapping[int, Trial]) -> dict[int, float]:
        """Rate results as a study does, by number."""
        if not self.has_ranks:
            return {number: trial.accuracy or 0.0 for number, trial in trials.items()}
        return ranks(self.objectives, {n: t if t.status == OK else None for n, t in trials.items()})

    def noisy_ratings(self, noises: Mapping[str, float]) -> dict[str, float]:
        """Rate the operators by their true values, with noise on the objective of the table."""
        if self.is_single:
            return {key: self.table.scores[key] + noise for key, noise in noises.items()}
        numbered = dict(enumerate(noises))
        trials = {}
        for number, key in numbered.items():
            true = self.table.mean_trial(key)
            if true is None:
                true = self.table.trial(key, self.table.seeds(key)[0])
            else:
                noise = noises[key]
                if self.objectives.objective.greater_is_better:
                    true = replace(true, accuracy=(true.accuracy or 0.0) + noise)
                else:
                    true = replace(true, loss=(true.loss or 0.0) + noise)
            trials[number] = true
        return {numbered[number]: value for number, value in self.ratings(trials).items()}

    def reach(self, steps: Sequence[ReplayStep], regret: Sequence[float], share: float) -> float:
        """Count the finished trials until a share is reached; infinity if it never is.

        Args:
            steps: of a run; regret: as `regret` returns it for them.
            share: one of `shares`.
        """
        if self.is_single:
            return trials_to(steps, frozenset(self.table.best(share)))
        found = (n for n, missing in enumerate(regret, 1) if missing <= 1 - share)
        return float(next(found, math.inf))

    def regret(self, steps: Sequence[ReplayStep]) -> list[float]:
        """Return the regret after each trial."""
        if self.is_single:
            return regret_curve(steps, self.table.scores[self.table.ranking[0]])
        # The archive is that of the results, which contain noise; its volume is the true one.
        archive: list[Trial] = []
        keys: dict[Trial, str] = {}
        found, missing = [], 1.0
        for step in steps:
            trial = self.table.trial(step.key, step.seed)
            if trial.status == OK:
                keys.setdefault(trial, step.key)
                before, archive = archive, self.objectives.archive([*archive, trial])
                if archive != before:
                    points = [self._points.get(keys[each]) for each in archive]
                    volume = self._volume([point for point in points if point is not None])
                    missing = 1 - volume / self._most
            found.append(missing)
        return found

    @cached_property
    def _points(self) -> dict[str, tuple[float, ...]]:
        """The true points of operators that satisfy the constraints, above the origin."""
        original = self.table.original
        units = None if original is None else self.objectives.units(original)
        if units is None:
            raise UserError(
                f"table '{self.table.name}' has no result of the original network, in units of "
                "which a hypervolume is\n  what to do: `syno bench table` trains it first"
            )
        true = {key: self.table.mean_trial(key) for key in self.table.keys}
        return {
            key: self.objectives.shares(trial, units)
            for key, trial in true.items()
            if trial is not None
            and self.objectives.scores(trial) is not None
            and self.objectives.violation(trial) == 0
        }

    @cached_property
    def _most(self) -> float:
        found = self._volume(list(self._points.values()))
        if found <= 0:
            raise UserError(
                f"no operator of table '{self.table.name}' improves on the original network\n"
                f"  objectives: {', '.join(map(str, self.objectives.all))}"
            )
        return found

    def _volume(self, points: Sequence[tuple[float, ...]]) -> float:
        return hypervolume(points, (0.0,) * len(self.objectives.all))


def as_problem(table: BenchmarkTable | Problem) -> Problem:
    """Return the problem of a table's own objective; a problem stays as it is."""
    return table if isinstance(table, Problem) else Problem.of(table)


def trials_to(steps: Sequence[ReplayStep], keys: frozenset[str]) -> float:
    """Count the finished trials up to and with the first of these operators."""
    return next((float(n) for n, step in enumerate(steps, 1) if step.key in keys), math.inf)


def regret_curve(steps: Sequence[ReplayStep], best: float) -> list[float]:
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
