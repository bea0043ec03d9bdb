"""A small store of real operators with their keys, written through the store's own door."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import SPECIFICATION, write_store

from syno import Operator


def small_store(path: Path) -> None:
    """A baseline, an answered and a failed operator in the study `digits-1`."""
    write_store(path, lambda text: Operator.from_text(text, SPECIFICATION).key)
