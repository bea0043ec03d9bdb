"""How the next operator is chosen.

A method looks at the history and nothing else: its choice is a function of (candidates, options,
seed, history). Random numbers are counter-based on (seed, ask number), so a resumed study goes on
exactly where it stopped and no generator has a state that could be lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One proposed operator: `status` is None while it is not answered.

    value: how good it turned out to be, 0 to 1 and more is better; None while nothing is known. The
    hold-out accuracy; with a ladder, by its rank at the highest rung that it reached
    (`asha.values`). 0 for a failure.
    """

    ask: int
    key: str
    status: str | None
    value: float | None = None


@dataclass(frozen=True)
class History:
    """The operators a study has proposed, in the order of asking; `ask` is the next number."""

    ask: int
    entries: tuple[Entry, ...]

    @property
    def keys(self) -> set[str]:
        """All keys proposed so far, whatever became of them."""
        return {entry.key for entry in self.entries}


class Method(Protocol):
    """A search method: `propose` gives the next operator, or None when there is none left."""

    def propose(self, history: History) -> Any | None:
        """Chooses; the same history gives the same operator."""


def choose(items: Sequence[T], seed: int, ask: int, purpose: str) -> T:
    """One of `items`, uniformly, by a random number that depends on the other arguments only."""
    stream = hashlib.blake2b(f"{seed}:{ask}:{purpose}".encode(), digest_size=16).digest()
    return items[int.from_bytes(stream, "big") % len(items)]
