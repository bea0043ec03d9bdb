"""Comparisons of inference engines as tables of text."""

from __future__ import annotations

from collections.abc import Callable

from syno._util.tables import Table
from syno.engines.compare import EngineComparison, NetworkTime


def engines_table(found: EngineComparison) -> Table:
    """Return a table of the networks in their engines; a speed-up above 1 is faster."""
    return Table.of(
        found.times,
        ("network", lambda time: time.network),
        ("engine", lambda time: time.engine),
        ("precision", lambda time: time.precision),
        ("median ms>", lambda time: f"{time.median_ms:.3f}"),
        ("quartiles ms>", lambda time: f"{time.low_ms:.3f} to {time.high_ms:.3f}"),
        ("best ms>", lambda time: f"{time.best_ms:.3f}"),
        ("speed-up over eager>", lambda time: f"{time.over_eager:.2f}x"),
        (f"over {found.rival}>", lambda time: f"{time.over_rival:.2f}x"),
        *_over_best(found),
        ("outside layers>", lambda time: "" if time.outside is None else f"{time.outside:.1%}"),
        ("error>", lambda time: f"{time.error:.1e}"),
        ("accuracy>", lambda time: "" if time.accuracy is None else f"{time.accuracy:.2%}"),
    ).without_empty()


def _over_best(found: EngineComparison) -> list[tuple[str, Callable[[NetworkTime], str]]]:
    """A column of speed-ups over the first network in the best engine, where that is Syno's."""
    if found.best == found.rival:
        return []
    return [
        (
            f"over {found.best}>",
            lambda time: "" if time.over_best is None else f"{time.over_best:.2f}x",
        )
    ]
