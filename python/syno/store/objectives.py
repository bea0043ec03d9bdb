"""Several objectives of one study, its constraints, and how results are compared by them.

A measure is a number in the result of an operator. A study has objectives, which are measures with
a direction, and constraints, which are bounds of measures. By default, its only objective is the
accuracy, loss or metric of its networks (`objective.py`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from syno._util.errors import UserError
from syno.store.hypervolume import gain, hypervolume
from syno.store.objective import Objective, objective_of

# What costs something, beside the objective of the study, and is minimized by default.
_COSTS: Mapping[str, Objective] = {
    name: Objective(name, unit, greater_is_better=False)
    for name, unit in (
        ("latency_ratio", ""),  # latency divided by that of the baseline in the same run
        ("latency_ms", "ms"),  # median latency of the network
        ("macs", ""),  # of the replaced layers for one sample
        ("params", ""),  # of the replaced layers
        ("memory", "bytes"),  # peak memory of the training
    )
}
# Those that are known of an operator before it is trained.
KNOWN = ("macs", "params")
# Measures that a search takes from `PredictedLatency` where nothing was measured.
PREDICTABLE: Mapping[str, str] = {"latency_ratio": "ratio", "latency_ms": "median_ms"}
# More would make the exact hypervolume slow.
MOST_OBJECTIVES = 4
# Progress is an increase of the hypervolume, or of the best value, by more than this share.
LEAST_PROGRESS = 1e-3
# Fewer results say nothing about further ones.
_LEAST_KNOWN = 8
_CONSTRAINT = re.compile(r"^\s*([A-Za-z_]\w*)\s*(<=|>=)\s*(\S+)\s*$")


class ComparedResult(Protocol):
    """What an operator is compared by: attributes with the names of costs, and these."""

    @property
    def accuracy(self) -> float | None:
        """On the validation split."""

    @property
    def details(self) -> Mapping[str, object]:
        """With the loss, the peak memory as `peak_bytes`, and a predicted latency."""


R = TypeVar("R", bound=ComparedResult)


@dataclass(frozen=True)
class Constraint:
    """A bound of a measure, which the results that a study looks for satisfy."""

    measure: str
    bound: float
    is_upper: bool

    def bounds(self, objective: Objective) -> bool:
        """Whether it bounds an objective from its worse side, as `macs<=2e6` does `macs:min`."""
        return self.measure == objective.name and self.is_upper != objective.greater_is_better

    def violation(self, value: float | None) -> float:
        """Return by how much a value is beyond the bound, as a share of it; 0 if it is not."""
        if value is None:
            return math.inf
        beyond = value - self.bound if self.is_upper else self.bound - value
        return max(0.0, beyond) / (abs(self.bound) or 1.0)

    def __str__(self) -> str:
        return f"{self.measure}{'<=' if self.is_upper else '>='}{self.bound:.12g}"


@dataclass(frozen=True)
class Objectives:
    """The objectives and constraints of a study.

    objective: the accuracy, loss or metric of its networks, whose name is one of the measures.
    all: the objectives that results are compared by.
    """

    objective: Objective
    all: tuple[Objective, ...]
    constraints: tuple[Constraint, ...] = ()

    @property
    def are_default(self) -> bool:
        """Whether `objective` is the only one, in its direction, without constraints."""
        return self.all == (self.objective,) and not self.constraints

    @property
    def measures(self) -> set[str]:
        """The measures of the objectives and constraints."""
        return {each.name for each in self.all} | {c.measure for c in self.constraints}

    def rises_with_macs(self, measure: str) -> bool:
        """Whether a measure is expected to rise with the MACs, as the accuracy or a cost."""
        return measure != self.objective.name or self.objective.greater_is_better

    def value(self, measure: str, result: ComparedResult) -> float | None:
        """Return a measure of a result; None if the result does not have it."""
        if measure == self.objective.name:
            return self.objective.of(result.accuracy, result.details)
        found = (
            result.details.get("peak_bytes")
            if measure == "memory"
            else getattr(result, measure, None)
        )
        if found is None and measure in PREDICTABLE:
            found = _predicted(result).get(PREDICTABLE[measure])
        return float(found) if isinstance(found, (int, float)) else None

    def is_predicted(self, result: ComparedResult) -> bool:
        """Whether an objective or a constraint compares a result by a predicted latency."""
        measures = self.measures
        return any(
            getattr(result, name, None) is None and field in _predicted(result)
            for name, field in PREDICTABLE.items()
            if name in measures
        )

    def scores(self, result: ComparedResult) -> tuple[float, ...] | None:
        """Return the values of the objectives, greater is better; None if one is missing."""
        found = []
        for objective in self.all:
            value = self.value(objective.name, result)
            if value is None or not math.isfinite(value):
                return None
            found.append(objective.score(value))
        return tuple(found)

    def violation(self, result: ComparedResult) -> float:
        """Return the sum of the violations of the constraints; 0 if all are satisfied."""
        return sum(c.violation(self.value(c.measure, result)) for c in self.constraints)

    @property
    def limit_costs(self) -> bool:
        """Whether a constraint bounds what is known of an operator before it is trained."""
        return any(c.measure in KNOWN for c in self.constraints)

    def known_before_training(self, macs: float | None, params: float | None) -> bool:
        """Whether an operator satisfies the constraints on its MACs and parameters."""
        given = {"macs": macs, "params": params}
        return all(
            c.violation(given[c.measure]) == 0 for c in self.constraints if c.measure in given
        )

    def archive(self, results: Iterable[R]) -> list[R]:
        """Return the results that satisfy all constraints and that no other one beats.

        Of equal results, the first one is kept.
        """
        kept: list[tuple[tuple[float, ...], R]] = []
        for result in results:
            scores = self.scores(result)
            if scores is None or self.violation(result) > 0:
                continue
            if any(other == scores or dominates(other, scores) for other, _ in kept):
                continue
            kept = [(other, r) for other, r in kept if not dominates(scores, other)]
            kept.append((scores, result))
        return [result for _, result in kept]

    def progress(
        self, results: Sequence[R], reference: ComparedResult | None
    ) -> list[float | None]:
        """Return how good the results are up to each of them; the values never fall.

        It is the hypervolume of several objectives, and the best score of a single one. It is None
        until a result satisfies the constraints.

        Args:
            results: of operators, in the order in which they ended.
            reference: as in `volume`; the first result if it is None.
        """
        advance = Advance(self, reference)
        return [advance.add(result) for result in results]

    def volume(
        self, results: Iterable[ComparedResult], reference: ComparedResult | None
    ) -> float | None:
        """Return the hypervolume of the archive, in units of a reference result.

        An objective that a constraint bounds counts from the bound. Any other maximized measure
        counts from 0, and any other minimized one from that of the reference (the loss from twice
        that), so that a network that costs more than the reference adds nothing.

        Args:
            results: of operators.
            reference: the result of the baseline network; None if there is none.
        """
        units = None if reference is None else self.units(reference)
        if units is None:
            return None
        points = [self.shares(result, units) for result in self.archive(results)]
        return hypervolume(points, (0.0,) * len(units))

    def units(self, reference: ComparedResult) -> tuple[float, ...] | None:
        """Return the values of a reference result; None if one of them is no unit."""
        found = []
        for objective in self.all:
            value = self.value(objective.name, reference)
            if value is None or value == 0 or not math.isfinite(value):
                return None
            found.append(abs(value))
        return tuple(found)

    def shares(self, result: ComparedResult, units: tuple[float, ...]) -> tuple[float, ...]:
        """Return the point of a result with `scores`, in the units that `units` returns.

        The reference of the hypervolume is the origin.
        """
        shares = []
        for objective, unit in zip(self.all, units, strict=True):
            value = self.value(objective.name, result)
            assert value is not None
            shares.append(self.share(objective, value, unit))
        return tuple(shares)

    def share(self, objective: Objective, value: float, unit: float) -> float:
        """Return one coordinate of `shares`."""
        return objective.score(value - self._start(objective, unit)) / unit

    def _start(self, objective: Objective, unit: float) -> float:
        """Return the value from which an objective counts.

        Results beyond the bound of an objective are not what a study looks for, so what is between
        the bound and the usual start would only distort how its objectives are weighed up.
        """
        bounds = [c.bound for c in self.constraints if c.bounds(objective)]
        if bounds:
            return max(bounds) if objective.greater_is_better else min(bounds)
        if objective.greater_is_better:
            return 0.0
        return 2.0 * unit if objective.name == self.objective.name else unit


def _predicted(result: ComparedResult) -> Mapping[str, object]:
    """Return the predicted latency of a result; nothing if it has none."""
    found = result.details.get("predicted_latency")
    return found if isinstance(found, Mapping) else {}


def dominates(a: Sequence[float], b: Sequence[float]) -> bool:
    """Whether `a` is nowhere worse than `b`, and somewhere better; greater is better."""
    return all(x >= y for x, y in zip(a, b, strict=True)) and tuple(a) != tuple(b)


def fronts(points: Mapping[int, Sequence[float]]) -> list[list[int]]:
    """Sort points into fronts: the first one is that of all points, the next that of the rest.

    In the lexicographic order, no point is dominated by a later one. So each joins the first front
    that does not dominate it (Zhang et al., "An Efficient Approach to Nondominated Sorting", 2015).
    """
    found: list[list[int]] = []
    for name, point in sorted(points.items(), key=lambda item: tuple(-x for x in item[1])):
        for front in found:
            if not any(dominates(points[other], point) for other in reversed(front)):
                front.append(name)
                break
        else:
            found.append([name])
    return found


def ranks(objectives: Objectives, results: Mapping[int, R | None]) -> dict[int, float]:
    """Rate results from 0 to 1: the share of the others that each beats, with half for a tie.

    A failure is the worst. Then come results that violate constraints, ordered by their violation,
    then the fronts of the others, the first one last. Within a front, a result whose neighbors on
    the front are farther apart is better. It is the scalar form for methods that compare operators
    by one number.

    Args:
        objectives: of the study.
        results: by the number of the proposal; None for a failure.
    """
    scores = {n: None if r is None else objectives.scores(r) for n, r in results.items()}
    beyond = {n: 0.0 if r is None else objectives.violation(r) for n, r in results.items()}
    return ranked(scores, beyond)


def ranked(
    scores: Mapping[int, tuple[float, ...] | None], beyond: Mapping[int, float]
) -> dict[int, float]:
    """Rate points as in `ranks`.

    Args:
        scores: by name, of which greater ones are better; None for a failure.
        beyond: by how much each violates constraints.
    """
    order: dict[int, tuple[float, float, float]] = {}
    feasible: dict[int, tuple[float, ...]] = {}
    for name, point in scores.items():
        if point is None:
            order[name] = (0.0, 0.0, 0.0)
        elif beyond[name] > 0:
            order[name] = (1.0, -beyond[name], 0.0)
        else:
            feasible[name] = point
    if all(len(point) == 1 for point in feasible.values()):
        order |= {name: (2.0, point[0], 0.0) for name, point in feasible.items()}
    else:
        for place, front in enumerate(fronts(feasible)):
            own = _distances([feasible[name] for name in front])
            for name, distance in zip(front, own, strict=True):
                order[name] = (2.0, -float(place), distance)
    ordered = sorted(order.values())
    others = len(ordered) - 1
    if others < 1:
        return {name: float(key[0] > 0) / 2 for name, key in order.items()}
    first = {key: place for place, key in reversed(list(enumerate(ordered)))}
    last = {key: place for place, key in enumerate(ordered)}
    return {
        name: (first[key] + last[key]) / 2 / others if key[0] > 0 else 0.0
        for name, key in order.items()
    }


def _distances(front: Sequence[tuple[float, ...]]) -> list[float]:
    """Return the crowding distance of each point of a front: how far apart its neighbors are.

    See Deb et al., "A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II" (2002).
    """
    found = [0.0] * len(front)
    for values in zip(*front, strict=True):
        order = sorted(range(len(front)), key=lambda place: values[place])
        span = values[order[-1]] - values[order[0]]
        found[order[0]] = found[order[-1]] = math.inf
        for before, place, after in zip(order, order[1:], order[2:], strict=False):
            found[place] += (values[after] - values[before]) / span if span > 0 else 0.0
    return found


def stale(progress: Sequence[float | None]) -> int:
    """Count the latest results without progress.

    Args:
        progress: as `Objectives.progress` returns it.
    """
    counted = _Stale()
    for value in progress:
        counted.add(value)
    return counted.count


class _Stale:
    """The number of the latest values without progress."""

    def __init__(self) -> None:
        self.count = 0
        self._reached: float | None = None

    def add(self, value: float | None) -> None:
        """Take the next value."""
        self.count += 1
        if value is None:
            return
        reached = self._reached
        if reached is None or value - reached > LEAST_PROGRESS * abs(reached):
            self._reached, self.count = value, 0


class Advance:
    """How good the results of a study are, while one after the other arrives.

    It gives the values of `Objectives.progress`, and as `stale` the number of the latest results
    without progress.

    Args:
        objectives: of the study.
        reference: as in `Objectives.progress`.
    """

    def __init__(self, objectives: Objectives, reference: ComparedResult | None) -> None:
        self._objectives, self._reference = objectives, reference
        self._kept: list[ComparedResult] = []
        self._value: float | None = None
        self._stale = _Stale()

    @property
    def stale(self) -> int:
        """The number of the latest results without progress."""
        return self._stale.count

    def add(self, result: ComparedResult) -> float | None:
        """Take the next result; return how good the results are up to it."""
        objectives, kept = self._objectives, self._kept
        self._reference = self._reference or result
        archive = objectives.archive([*kept, result])
        if archive != kept and len(objectives.all) == 1:
            scores = objectives.scores(archive[0])
            self._value = None if scores is None else scores[0]
        elif archive != kept:
            units = objectives.units(self._reference)
            if units is not None:
                others = [objectives.shares(other, units) for other in kept]
                origin = (0.0,) * len(units)
                added = gain(objectives.shares(result, units), others, origin)
                self._value = (self._value or 0.0) + added
        self._kept = archive
        self._stale.add(self._value)
        return self._value


def expected_improvement(progress: Sequence[float | None], more: int) -> float | None:
    """Extrapolate by how much so many further results will improve the best or the hypervolume.

    The best of n results grows about as the logarithm of n, because the n-th one is a record with
    probability 1/n. The slope is fitted to the last three quarters of the results.

    Args:
        progress: as `Objectives.progress` returns it.
        more: the number of further results.

    Returns:
        The improvement, at least 0; None before eight of these results have a value.
    """
    count = len(progress)
    known = [(math.log(n), v) for n, v in enumerate(progress, 1) if 4 * n > count and v is not None]
    if len(known) < _LEAST_KNOWN:
        return None
    middle = math.fsum(x for x, _ in known) / len(known)
    spread = math.fsum((x - middle) ** 2 for x, _ in known)
    slope = math.fsum((x - middle) * value for x, value in known) / spread
    return max(0.0, slope) * math.log1p(more / count)


def objectives_of(settings: Mapping[str, object]) -> Objectives:
    """Return the objectives and constraints of a study from its settings."""
    texts, constraints = (settings.get(name) or () for name in ("objectives", "constraints"))
    assert isinstance(texts, Sequence) and isinstance(constraints, Sequence)
    return parse_objectives(texts, constraints, objective_of(settings))


def parse_objectives(
    texts: Sequence[str], constraints: Sequence[str], objective: Objective
) -> Objectives:
    """Read objectives such as `accuracy` or `macs:min`, and constraints such as `macs<=2e6`.

    Args:
        texts, constraints: of the study.
        objective: the accuracy, loss or metric of its networks, the only one if there are no texts.

    Raises:
        UserError: for an unknown measure, for an objective that is given twice, for more than four
            objectives, and for constraints that nothing satisfies.
    """
    found = tuple(_objective(text, objective) for text in texts) or (objective,)
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(f"the objective '{twice[0]}' is given twice")
    if len(found) > MOST_OBJECTIVES:
        raise UserError(
            f"{len(found)} objectives are too many\n"
            f"  expected: at most {MOST_OBJECTIVES}      got: {', '.join(names)}"
        )
    bounds = tuple(_constraint(text, objective) for text in constraints)
    _check_possible(bounds, objective)
    return Objectives(objective, found, bounds)


def _known(objective: Objective) -> str:
    return ", ".join([objective.name, *_COSTS])


def _check_measure(name: str, objective: Objective) -> None:
    if name != objective.name and name not in _COSTS:
        raise UserError(f"'{name}' is no measure\n  expected: one of {_known(objective)}")


def _objective(text: str, objective: Objective) -> Objective:
    name, _, direction = text.strip().partition(":")
    _check_measure(name, objective)
    if direction not in ("", "min", "max"):
        raise UserError(
            f"the objective '{text}' has no such direction\n"
            f"  expected: {name}, {name}:min or {name}:max"
        )
    usual = objective if name == objective.name else _COSTS[name]
    return replace(usual, greater_is_better=direction == "max") if direction else usual


def _constraint(text: str, objective: Objective) -> Constraint:
    match = _CONSTRAINT.match(text)
    try:
        bound = float(match[3]) if match else math.nan
    except ValueError:
        bound = math.nan
    if match is None or not math.isfinite(bound):
        raise UserError(
            f"'{text}' is no constraint\n"
            "  expected: a measure, <= or >=, and a number, such as latency_ratio<=0.8"
        )
    _check_measure(match[1], objective)
    return Constraint(match[1], bound, match[2] == "<=")


def _check_possible(constraints: Sequence[Constraint], objective: Objective) -> None:
    for measure in dict.fromkeys(c.measure for c in constraints):
        own = [c for c in constraints if c.measure == measure]
        most = min((c.bound for c in own if c.is_upper), default=math.inf)
        least = max((c.bound for c in own if not c.is_upper), default=-math.inf)
        is_share = measure == objective.name and objective.is_share
        is_positive = measure != objective.name or is_share
        if least > most or (is_positive and most <= 0) or (is_share and least > 1):
            given = " and ".join(map(str, own))
            raise UserError(
                f"nothing can satisfy {given}\n"
                f"  what to do: give bounds of {measure} that leave a range"
            )
