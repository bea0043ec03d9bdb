"""Counter-based random numbers that stay the same across NumPy versions.

NumPy promises stable raw bits of its bit generators but not stable methods of ``Generator``, so a
split or a batch order drawn with the latter may change with an upgrade. Here every draw is a fixed
function of Philox bits.
"""

from __future__ import annotations

import numpy as np

_MASK = (1 << 64) - 1


class Stream:
    """Random numbers of one (seed, stream) pair; pairs are independent of each other."""

    def __init__(self, seed: int, stream: int = 0) -> None:
        key = np.array([seed & _MASK, stream & _MASK], dtype=np.uint64)
        self._bits = np.random.Philox(key=key)

    def permutation(self, count: int) -> np.ndarray:
        """A random order of 0 .. count - 1, int64 [count]."""
        return np.argsort(self._bits.random_raw(count), kind="stable")

    def below(self, bound: int, count: int) -> np.ndarray:
        """Uniform integers 0 .. bound - 1, int64 [count]; the bias is below bound / 2^64."""
        return (self._bits.random_raw(count) % np.uint64(bound)).astype(np.int64)
