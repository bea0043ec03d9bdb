"""Orbits: operators that the symmetries of a specification map onto each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

from syno import _core
from syno.operators.operator import Operator
from syno.operators.specification import Specification


def orbit_keys(operators: Sequence[Operator], specification: Specification) -> list[str]:
    """Return the key of each operator's orbit, as `Operator.orbit` does, for many operators."""
    return _core.orbit_keys([operator._core for operator in operators], specification._core)


def orbits(operators: Sequence[Operator], specification: Specification) -> list[list[int]]:
    """Group operators by orbit.

    Returns:
        The numbers of the operators of each orbit, in the order of the first ones.
    """
    found: dict[str, list[int]] = {}
    for number, key in enumerate(orbit_keys(operators, specification)):
        found.setdefault(key, []).append(number)
    return list(found.values())


def mean_difference(groups: Sequence[Sequence[float]]) -> tuple[float, int]:
    """Return the mean absolute difference of values within groups, and the number of pairs.

    Of the accuracies of operators in one orbit it measures the noise of trainings, because the
    operators train alike: n independent values of deviation d differ by 1.13 d on average.
    """
    pairs = [abs(a - b) for group in groups for a, b in combinations(group, 2)]
    return (fmean(pairs), len(pairs)) if pairs else (0.0, 0)
