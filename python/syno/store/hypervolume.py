"""The hypervolume of a set of points: the volume between them and a reference point.

A greater coordinate is better. The volume is exact: it is the sum of what each point adds to those
before it (While et al., "A Fast Way of Calculating Exact Hypervolumes", 2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[float, ...]


def hypervolume(points: Sequence[Sequence[float]], reference: Sequence[float]) -> float:
    """Return the volume that at least one point dominates and that dominates the reference.

    Args:
        points: of equal dimension; those that are not above the reference add nothing.
        reference: the worst corner.
    """
    inside = [
        tuple(x - r for x, r in zip(point, reference, strict=True))
        for point in points
        if all(x > r for x, r in zip(point, reference, strict=True))
    ]
    return _volume(inside)


def gain(
    point: Sequence[float], others: Sequence[Sequence[float]], reference: Sequence[float]
) -> float:
    """Return by how much a point increases the hypervolume of others."""
    if any(x <= r for x, r in zip(point, reference, strict=True)):
        return 0.0
    limited = [tuple(map(min, other, point)) for other in others]
    return math.prod(x - r for x, r in zip(point, reference, strict=True)) - hypervolume(
        limited, reference
    )


def _volume(points: list[Point]) -> float:
    """Return the volume above the origin."""
    if not points:
        return 0.0
    if len(points[0]) == 1:
        return max(point[0] for point in points)
    if len(points[0]) == 2:
        return _area(points)
    total = 0.0
    before: list[Point] = []
    # Of the points with a greater last coordinate, what is left of them is often dominated.
    for point in sorted(points, key=lambda p: -p[-1]):
        limited = _front([tuple(map(min, other, point)) for other in before])
        total += math.prod(point) - _volume(limited)
        before.append(point)
    return total


def _area(points: list[Point]) -> float:
    total = highest = 0.0
    for x, y in sorted(points, reverse=True):
        if y > highest:
            total += x * (y - highest)
            highest = y
    return total


def _front(points: list[Point]) -> list[Point]:
    """Leave out the points that another one dominates, and repeated ones."""
    kept: list[Point] = []
    for point in sorted(set(points), reverse=True):
        if not any(all(a >= b for a, b in zip(other, point, strict=True)) for other in kept):
            kept.append(point)
    return kept
