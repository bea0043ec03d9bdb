"""Numbers as the page and the terminal show them: `syno._util.numbers`, and values of objectives
by the name of the objective."""

from __future__ import annotations

from syno._util.numbers import (
    MISSING,
    count,
    duration,
    milliseconds,
    percent,
    perplexity,
    points,
    primitives,
    ratio,
    short,
)
from syno.store.objective import named


def quality(value: float | None, objective: str) -> str:
    """A value of the objective with that name: `93.1 %`, or a loss in nats a token, `1.823`."""
    return named(objective).shown(value)


__all__ = [
    "MISSING",
    "count",
    "duration",
    "milliseconds",
    "percent",
    "perplexity",
    "points",
    "primitives",
    "quality",
    "ratio",
    "short",
]
