"""The rate of an enumeration, and an estimate of the remaining time of a depth limit."""

from __future__ import annotations

import time
from collections.abc import Callable

from syno._core import EnumerateStatus
from syno._util.numbers import duration

# Seconds at a depth limit before its rate is reported.
_SETTLED = 0.5


class EnumerationPace:
    """The rate of an enumeration; earlier depth limits give their growth."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sizes: list[int] = []
        self._before = 0
        self._started = clock()

    def limit_completed(self, visited: int) -> None:
        """Record a completed depth limit; visited: partial graphs over all limits."""
        self._sizes.append(visited - self._before)
        self._before = visited
        self._started = self._clock()

    def seen(self, visited: int) -> tuple[float | None, float | None]:
        """Return graphs per second and the remaining seconds; None if a value is unknown."""
        seconds = self._clock() - self._started
        here = visited - self._before
        if seconds < _SETTLED or here <= 0:
            return None, None
        rate = here / seconds
        if len(self._sizes) < 2 or self._sizes[-2] == 0:
            return rate, None
        expected = self._sizes[-1] ** 2 / self._sizes[-2]
        # If more than expected was visited, the remaining time is unknown.
        return rate, (expected - here) / rate if expected > here else None

    def in_words(self, status: EnumerateStatus, until: float | None) -> str:
        """Describe the progress of an enumeration in a few words.

        until: the remaining seconds of the time limit, None without a limit.
        """
        rate, left = self.seen(status.nodes)
        parts = [f"level {status.level} of {status.depth_limit}", f"{status.nodes:,} graphs"]
        if rate is not None:
            parts.append(f"{rate:,.0f}/s")
        if until is not None:
            left = until if left is None else min(left, until)
        if left is not None:
            parts.append(f"{duration(left)} left")
        return ", ".join([*parts, f"{status.operators:,} operators"])
