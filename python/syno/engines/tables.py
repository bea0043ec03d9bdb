"""Comparisons of inference engines as tables of text."""

from __future__ import annotations

from syno._util.tables import Table
from syno.engines.compare import Comparison


def engines_table(found: Comparison) -> Table:
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
        ("outside layers>", lambda time: "" if time.outside is None else f"{time.outside:.1%}"),
        ("error>", lambda time: f"{time.error:.1e}"),
    ).without_empty()
