"""Means of what a list or a generator gives."""

from __future__ import annotations

import statistics
from collections.abc import Iterable


def mean(values: Iterable[float]) -> float:
    """The arithmetic mean."""
    return statistics.mean(list(values))


def median(values: Iterable[float]) -> float:
    """The median."""
    return statistics.median(list(values))


def geomean(values: Iterable[float]) -> float | None:
    """The geometric mean; None of nothing, which leaves a cell empty."""
    found = list(values)
    return statistics.geometric_mean(found) if found else None


def stdev(values: Iterable[float]) -> float:
    """The standard deviation of a sample."""
    return statistics.stdev(list(values))
