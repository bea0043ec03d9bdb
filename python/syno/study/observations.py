"""The objectives and constraints of a study as numbers that a model predicts.

The MACs and parameters of an operator are known before it is trained. Of every other measure, a
model is fitted to the results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from syno.store.objective import Objective
from syno.store.objectives import KNOWN, Constraint, Objectives, ranks
from syno.store.records import OK
from syno.study.improvement import expected_gain
from syno.study.members import Members
from syno.study.methods.history import History, HistoryEntry, Trial
from syno.surrogate import Prediction, SurrogateModel

Array = NDArray[np.float64]
# Results that are so many interquartile ranges below the median are no worse than that.
_FAR = 3.0


class ModelFitter(Protocol):
    """Fits a model to operators of a study."""

    def __call__(self, features: Array, targets: Array, *, results: int) -> SurrogateModel:
        """Fit to features [operators, features] and targets; `results` is their number."""


@dataclass(frozen=True)
class Observations:
    """What operators with results have, and what a new one adds to it.

    units: of the objectives, as `Objectives.units`.
    places, trials: of the operators with a result; the trial of a failure is None.
    values: of the measures, by name, for each entry; NaN for failures.
    """

    objectives: Objectives
    units: tuple[float, ...]
    members: Members
    places: NDArray[np.int64]
    trials: tuple[Trial | None, ...]
    values: dict[str, Array]

    @staticmethod
    def of(
        history: History, entries: Sequence[HistoryEntry], members: Members
    ) -> Observations | None:
        """Read the measures of operators with a result.

        Returns:
            None for a study with one objective without constraints, and before there is a unit: a
            result of the original network, or else of any operator.
        """
        objectives = history.objectives
        if objectives is None:
            return None
        is_single = len(objectives.all) == 1 and not objectives.constraints
        trials = [e.last if e.status == OK else None for e in entries]
        good = [t for t in (*history.baseline, *trials) if t is not None and t.status == OK]
        units = next((found for t in good if (found := objectives.units(t)) is not None), None)
        if is_single or units is None:
            return None
        values = {
            name: np.array(
                [math.nan if t is None else _number(objectives.value(name, t)) for t in trials]
            )
            for name in sorted(objectives.measures)
        }
        if not all(np.isfinite(values[name]).any() for name in values if name not in KNOWN):
            return None
        places = [members.place(entry.key) for entry in entries]
        return Observations(objectives, units, members, np.array(places), tuple(trials), values)

    def ranks(self) -> Array:
        """Return the ranks of the operators with a result, as `syno.store.objectives.ranks`."""
        found = ranks(self.objectives, dict(enumerate(self.trials)))
        return np.array([found[number] for number in range(len(self.trials))])

    def gain(
        self, features: Array, places: NDArray[np.int64], pool: Array, fit: ModelFitter
    ) -> Array:
        """Return by how much operators are expected to increase the hypervolume.

        It is multiplied with the probability that they satisfy the constraints, except for those
        that bound an objective: the hypervolume counts from their bounds, so that what is beyond
        them adds nothing anyway.

        Args:
            features: of the operators with a result.
            places, pool: of the operators in question, with their features.
            fit: fits a model.
        """
        front, mean, deviation = [], [], []
        old, new = {}, {}
        for name in self.values:
            if name in KNOWN:
                old[name], new[name] = self._known(name, self.places), self._known(name, places)
            else:
                model = fit(features, self._targets(name), results=len(self.places))
                old[name], new[name] = model.predict(features), model.predict(pool)
        for objective, unit in zip(self.objectives.all, self.units, strict=True):
            name = objective.name
            front.append(self._shares(objective, old[name].mean, unit))
            mean.append(self._shares(objective, new[name].mean, unit))
            deviation.append(new[name].deviation / unit)
        allowed = np.all([np.isfinite(values) for values in self.values.values()], axis=0)
        chance = np.ones(len(places))
        for constraint in self.objectives.constraints:
            name = constraint.measure
            allowed &= _chance(constraint, old[name], is_sure=True) > 0
            if not any(map(constraint.bounds, self.objectives.all)):
                chance *= _chance(constraint, new[name], is_sure=name in KNOWN)
        points = [tuple(map(float, point)) for point in np.stack(front, axis=1)[allowed]]
        return chance * expected_gain(np.stack(mean, axis=1), np.stack(deviation, axis=1), points)

    def _known(self, name: str, places: NDArray[np.int64]) -> Prediction:
        found = [self.members[place] for place in places]
        values = [c.macs if name == "macs" else c.params for c in found]
        return Prediction(np.array(values, dtype=float), np.zeros(len(values)))

    def _targets(self, name: str) -> Array:
        """Return the values that a model is fitted to.

        A failure counts as the worst result. What is far worse than most counts as less bad,
        because the model should tell good results apart.
        """
        values = self.values[name]
        sign = 1.0 if self._is_maximized(name) else -1.0
        good = sign * values[np.isfinite(values)]
        low, middle, high = np.quantile(good, (0.25, 0.5, 0.75))
        least = float(good.min())
        if high > low:
            least = max(least, float(middle - _FAR * (high - low)))
        return np.asarray(sign * np.maximum(np.nan_to_num(sign * values, nan=least), least))

    def _is_maximized(self, name: str) -> bool:
        for objective in self.objectives.all:
            if objective.name == name:
                return objective.greater_is_better
        return any(not c.is_upper for c in self.objectives.constraints if c.measure == name)

    def _shares(self, objective: Objective, values: Array, unit: float) -> Array:
        return np.array([self.objectives.share(objective, float(v), unit) for v in values])


def _chance(constraint: Constraint, found: Prediction, *, is_sure: bool) -> Array:
    """Return the probability that a measure is within a bound; of the mean, if it is sure."""
    from scipy.special import ndtr

    inside = constraint.bound - found.mean if constraint.is_upper else found.mean - constraint.bound
    if is_sure:
        return np.asarray(inside >= 0, dtype=float)
    return np.asarray(ndtr(inside / np.maximum(found.deviation, 1e-12)))


def _number(value: float | None) -> float:
    return math.nan if value is None or not math.isfinite(value) else value
