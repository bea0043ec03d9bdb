"""The mean of ratios in pages; other means are those of `statistics`."""

from __future__ import annotations

import statistics
from collections.abc import Iterable


def geomean(values: Iterable[float]) -> float | None:
    """The geometric mean; None of nothing, which leaves a cell empty."""
    found = list(values)
    return statistics.geometric_mean(found) if found else None
