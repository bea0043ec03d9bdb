"""Pareto fronts: of several results, those that no other one beats."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def pareto_front(points: Iterable[tuple[float, float, int, T]]) -> list[T]:
    """Return the items that are on the front, the cheapest first.

    Args:
        points: tuples (cost, score, number, item), of which greater scores are better. An item is
            beaten by one that costs no more and is at least as good, and is better in one of the
            two. Of equal items, the one with the lowest number is kept.
    """
    best = -math.inf
    kept = []
    for _, score, _, item in sorted(points, key=lambda point: (point[0], -point[1], point[2])):
        if score > best:
            kept.append(item)
            best = score
    return kept
