"""The hypervolume of a set of points: the volume between them and a reference point.

A greater coordinate is better. The volume is exact: the last coordinate is swept from the best
point to the reference, and each slab is a hypervolume of one dimension less (While et al., "A
Faster Algorithm for Calculating Hypervolume", 2006).
"""

from __future__ import annotations

from collections.abc import Sequence

Point = Sequence[float]


def hypervolume(points: Sequence[Point], reference: Point) -> float:
    """Return the volume that at least one point dominates and that dominates the reference.

    Args:
        points: of equal dimension; those that are not above the reference add nothing.
        reference: the worst corner.
    """
    inside = [tuple(p) for p in points if all(x > r for x, r in zip(p, reference, strict=True))]
    return _volume(inside, tuple(reference))


def contributions(points: Sequence[Point], reference: Point) -> list[float]:
    """Return for each point the volume that no other point dominates."""
    whole = hypervolume(points, reference)
    return [
        whole - hypervolume([*points[:place], *points[place + 1 :]], reference)
        for place in range(len(points))
    ]


def _volume(points: list[tuple[float, ...]], reference: tuple[float, ...]) -> float:
    if not points:
        return 0.0
    if len(reference) == 1:
        return max(p[0] for p in points) - reference[0]
    if len(reference) == 2:
        return _area(points, reference)
    ordered = sorted(points, key=lambda p: -p[-1])
    total = 0.0
    front: list[tuple[float, ...]] = []
    for place, point in enumerate(ordered):
        front = _joined(front, point[:-1])
        below = ordered[place + 1][-1] if place + 1 < len(ordered) else reference[-1]
        if point[-1] > below:
            total += (point[-1] - below) * _volume(front, reference[:-1])
    return total


def _area(points: list[tuple[float, ...]], reference: tuple[float, ...]) -> float:
    total, highest = 0.0, reference[1]
    for x, y in sorted(points, reverse=True):
        if y > highest:
            total += (x - reference[0]) * (y - highest)
            highest = y
    return total


def _joined(front: list[tuple[float, ...]], point: tuple[float, ...]) -> list[tuple[float, ...]]:
    """Add a point to a front, without the points that it dominates."""
    if any(all(a >= b for a, b in zip(other, point, strict=True)) for other in front):
        return front
    kept = [p for p in front if not all(b >= a for a, b in zip(p, point, strict=True))]
    return [*kept, point]
