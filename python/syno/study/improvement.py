"""How much operators are expected to improve what a study has, from predicted results.

One objective: expected improvement (Jones et al., "Efficient Global Optimization of Expensive
Black-Box Functions", 1998). Several: expected improvement of the hypervolume, exact for independent
normal distributions. What a point adds to the hypervolume is its share of every box of a partition
of the region that no point dominates; in a box, the expectation is a product over the objectives
(Yang et al., "Efficient Computation of Expected Hypervolume Improvement Using Box Decomposition
Algorithms", 2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syno.store.hypervolume import gain

Array = NDArray[np.float64]
Point = tuple[float, ...]
# The number of boxes is about that of the points of the front to the power of the objectives - 1.
_MOST_POINTS = {1: 1, 2: 1000, 3: 32, 4: 16}


@dataclass(frozen=True)
class Box:
    """The points between two corners; the upper one may be infinite."""

    low: Point
    high: Point


def expected_excess(mean: Array, deviation: Array, level: float) -> Array:
    """Return the expectation of what normal values are above a level, and 0 below it."""
    from scipy.special import ndtr

    if math.isinf(level):
        return np.zeros_like(mean)
    deviation = np.maximum(deviation, 1e-12)
    z = (mean - level) / deviation
    return np.asarray(
        deviation * (z * ndtr(z) + np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi))
    ).clip(0)


def expected_gain(mean: Array, deviation: Array, front: Sequence[Point]) -> Array:
    """Return the expected increase of the hypervolume above the origin.

    Args:
        mean, deviation: of the objectives of each operator, greater is better, [operators,
            objectives].
        front: the points that the hypervolume has already.
    """
    count = mean.shape[1]
    columns: list[dict[float, Array]] = [{} for _ in range(count)]
    total = np.zeros(len(mean))
    for box in boxes(_thinned(front, count), count):
        share = np.ones(len(mean))
        for place, (low, high) in enumerate(zip(box.low, box.high, strict=True)):
            known = columns[place]
            for level in (low, high):
                if level not in known:
                    known[level] = expected_excess(mean[:, place], deviation[:, place], level)
            share *= known[low] - known[high]
        total += share
    return total.clip(0)


def boxes(front: Sequence[Point], objectives: int) -> list[Box]:
    """Partition the region above the origin that no point of a front dominates.

    Args:
        front: points of so many coordinates, greater is better.
        objectives: the number of coordinates.
    """
    if objectives == 1:
        return [Box((max((0.0, *(point[0] for point in front))),), (math.inf,))]
    levels = sorted({0.0, *(max(0.0, point[-1]) for point in front)}, reverse=True)
    found = []
    for high, low in zip([math.inf, *levels], levels, strict=False):
        # These points dominate what is below them in the other coordinates.
        above = [point[:-1] for point in front if point[-1] >= high]
        found += [
            Box((*each.low, low), (*each.high, high)) for each in boxes(above, objectives - 1)
        ]
    return found


def _thinned(front: Sequence[Point], objectives: int) -> list[Point]:
    """Leave out dominated points, and of many points those that add little to the others."""
    most = _MOST_POINTS.get(objectives, 8)
    inside = sorted({point for point in front if min(point) > 0})
    if inside:
        points = np.array(inside)
        above = (points[None] >= points[:, None]).all(axis=2)  # every point is above itself
        inside = [point for point, n in zip(inside, above.sum(axis=1), strict=True) if n == 1]
    if len(inside) <= most:
        return inside
    origin = (0.0,) * objectives
    added = {p: gain(p, [other for other in inside if other != p], origin) for p in inside}
    return sorted(inside, key=lambda point: -added[point])[:most]
