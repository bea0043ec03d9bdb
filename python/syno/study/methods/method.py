"""How the next operator is chosen.

A method looks at the history and nothing else: its choice is a function of (candidates, options,
seed, history). Random numbers are counter-based on (seed, ask number), so a resumed study goes on
exactly where it stopped and no generator has a state that could be lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol, TypeVar

from syno.operators.operator import Operator
from syno.study.methods.history import History

T = TypeVar("T")


class Method(Protocol):
    """A search method: `propose` gives the next operator, or None when there is none left."""

    def propose(self, history: History) -> Operator | None:
        """Chooses; the same history gives the same operator."""


def choose(items: Sequence[T], seed: int, ask: int, purpose: str) -> T:
    """One of `items`, uniformly, by a random number that depends on the other arguments only."""
    stream = hashlib.blake2b(f"{seed}:{ask}:{purpose}".encode(), digest_size=16).digest()
    return items[int.from_bytes(stream, "big") % len(items)]
