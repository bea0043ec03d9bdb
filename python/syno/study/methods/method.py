"""The interface of search methods, which select the next operator.

The selection is a function of (candidates, options, seed, history). Random numbers depend on (seed,
proposal number) only, so a method has no state, and a resumed study proposes the same operators.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol, TypeVar

from syno.operators.operator import Operator
from syno.study.methods.history import History

T = TypeVar("T")


class Method(Protocol):
    """A search method.

    foresees: whether proposals hardly depend on results, so that the next one is known before.
    """

    foresees: bool

    def propose(self, history: History) -> Operator | None:
        """Return the next operator, or None if there is none left.

        The same history gives the same operator.
        """


def choose(items: Sequence[T], seed: int, ask: int, purpose: str) -> T:
    """Select an item uniformly, by a random number that depends on the other arguments only."""
    stream = hashlib.blake2b(f"{seed}:{ask}:{purpose}".encode(), digest_size=16).digest()
    return items[int.from_bytes(stream, "big") % len(items)]
