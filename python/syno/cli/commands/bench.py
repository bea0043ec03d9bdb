"""`syno bench`: measurements of speed on this machine."""

from __future__ import annotations

from syno.cli import framework


@framework.group("bench", "bench_network", "bench_slots")
def command() -> None:
    """Measure networks, operators and searches."""
