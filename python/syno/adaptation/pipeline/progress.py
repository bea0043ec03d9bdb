"""Who is told how far an adaptation is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

# Called with what is done of a phase, of how much, and a remark.
Progress = Callable[[int, int, str], None]


class AdaptationObserver(Protocol):
    """Is told how far an adaptation is: the phase, and how much is done of it, and with what."""

    def __call__(self, phase: str, done: int, total: int, remark: str) -> None:
        """Take note."""


def silent(*_: object, **__: object) -> None:
    """Nobody watches."""
