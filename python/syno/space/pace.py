"""How fast an enumeration is, and how long its present depth limit will take."""

from __future__ import annotations

import time
from collections.abc import Callable

from syno._core import EnumerateStatus
from syno._util.numbers import duration

# Below this many seconds at a depth limit, a rate says nothing.
_SETTLED = 0.5


class Pace:
    """The pace of an enumeration: the depth limits before say how fast they grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sizes: list[int] = []
        self._before = 0
        self._started = clock()

    def limit_completed(self, visited: int) -> None:
        """A limit was listed completely, after `visited` partial graphs over all limits."""
        self._sizes.append(visited - self._before)
        self._before = visited
        self._started = self._clock()

    def seen(self, visited: int) -> tuple[float | None, float | None]:
        """(partial graphs a second, seconds left at this limit), None where nothing is known."""
        seconds = self._clock() - self._started
        here = visited - self._before
        if seconds < _SETTLED or here <= 0:
            return None, None
        rate = here / seconds
        if len(self._sizes) < 2 or self._sizes[-2] == 0:
            return rate, None
        expected = self._sizes[-1] ** 2 / self._sizes[-2]
        # More than expected has been visited already: then nothing is known.
        return rate, (expected - here) / rate if expected > here else None

    def in_words(self, status: EnumerateStatus, until: float | None) -> str:
        """How far an enumeration is that has so many seconds (None: no limit), for a bar of 80
        columns, which has room for little."""
        rate, left = self.seen(status.nodes)
        parts = [f"level {status.level} of {status.depth_limit}", f"{status.nodes:,} graphs"]
        if rate is not None:
            parts.append(f"{rate:,.0f}/s")
        if until is not None:
            left = until if left is None else min(left, until)
        if left is not None:
            parts.append(f"{duration(left)} left")
        return ", ".join([*parts, f"{status.operators:,} operators"])
