"""Hooks of modules for the time of a block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Handle(Protocol):
    """What torch returns for a hook."""

    def remove(self) -> None:
        """Take the hook away."""


@contextmanager
def removed_after(handles: Iterable[Handle]) -> Iterator[None]:
    """Takes hooks away after the block, however it ends."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
