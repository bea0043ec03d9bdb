"""The front of an adaptation as series of points, for the plot and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from syno.adaptation.pipeline.results import AdaptationResults, NetworkRow, spread

Split = Literal["test", "validation"]
Role = Literal["front", "rival", "original"]


@dataclass(frozen=True)
class Point:
    """A network: its speed-up over the original, its objective, and the spread over seeds."""

    name: str
    speedup: float
    value: float
    spread: float | None


@dataclass(frozen=True)
class Series:
    """Networks that were made in the same way, by ascending speed-up."""

    name: str
    role: Role
    points: tuple[Point, ...]


def split_of(found: AdaptationResults) -> Split:
    """The split of the plotted values: the test split if it was measured."""
    return "test" if all(each.row.test is not None for each in found.networks) else "validation"


def axis_of(found: AdaptationResults) -> str:
    """The label of the axis of the objective, without its unit."""
    return f"{found.objective.name} on the {split_of(found)} split"


def series(found: AdaptationResults) -> list[Series]:
    """Return the rivals, one series a way, the adapted networks, and the original.

    Networks without a latency or a value on the split are left out, and so are empty series.
    """
    split = split_of(found)
    ways: dict[str, list[NetworkRow]] = {}
    for row in found.rivals:
        ways.setdefault(row.way, []).append(row)
    every: list[Series] = [
        *(Series(way, "rival", _points(rows, split)) for way, rows in ways.items()),
        Series("adapted", "front", _points([each.row for each in found.networks], split)),
        Series("original", "original", _points([found.original], split)),
    ]
    return [each for each in every if each.points]


def _points(rows: Sequence[NetworkRow], split: Split) -> tuple[Point, ...]:
    points = []
    for row in rows:
        value, values = (row.test, row.tests) if split == "test" else (row.value, row.values)
        if value is not None and row.ratio:
            points.append(Point(row.name, 1.0 / row.ratio, value, spread(values)))
    return tuple(sorted(points, key=lambda point: point.speedup))
