"""Watching an enumeration: a bar with the time left, and an orderly end on Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from syno.cli import output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno._core import EnumerateStatus

# Below this many seconds at a depth limit, a rate says nothing.
_SETTLED = 0.5


class Estimate:
    """How long the present depth limit will take: the limits before say how fast they grow."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sizes: list[int] = []
        self._limit = 0
        self._before = 0
        self._started = clock()

    def limit_listed(self, visited: int) -> None:
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


class Interrupts:
    """Whether Ctrl-C was pressed. It asks for an end; a second one interrupts as usual."""

    def __init__(self, remark: str) -> None:
        self.interrupted = False
        self._remark = remark

    def interrupt(self, *_: Any) -> None:
        """Stop at the next opportunity; from now on Ctrl-C interrupts as usual."""
        self.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        output.say(f"{self._remark} (Ctrl-C again to leave)")


@contextlib.contextmanager
def ends_on_interrupt(remark: str) -> Iterator[Interrupts]:
    """While the block runs, Ctrl-C says `remark` and is noted; it does not end the program."""
    interrupts = Interrupts(remark)
    # Only the main thread may say what a signal does.
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, interrupts.interrupt)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)


class ListingWatch:
    """What `Space.listed` calls while it works."""

    def __init__(
        self, move: output.Move, max_seconds: float | None, interrupts: Interrupts
    ) -> None:
        self._interrupts = interrupts
        self._move = move
        self._estimate = Estimate()
        self._done = 0
        self._visited = 0
        self._ends = None if not max_seconds else time.monotonic() + max_seconds

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C asked for the end."""
        return self._interrupts.interrupted

    def progress(self, status: EnumerateStatus) -> bool:
        """Move the bar; False when the listing is to end."""
        rate, left = self._estimate.seen(status.nodes)
        # The shortest words: a bar of 80 columns has room for little more.
        parts = [f"level {status.level} of {status.depth_limit}", f"{status.nodes:,} graphs"]
        if rate is not None:
            parts.append(f"{rate:,.0f}/s")
        if self._ends is not None:
            until = max(0.0, self._ends - time.monotonic())
            left = until if left is None else min(left, until)
        if left is not None:
            parts.append(f"{fmt.duration(left)} left")
        parts.append(f"{status.operators:,} operators")
        self._move(self._done, ", ".join(parts))
        return not self.interrupted

    def limit_listed(self, space: Any) -> None:
        """A depth limit was listed completely."""
        self._visited += space.counts()["visited"]
        self._done = space.complete_depth
        self._estimate.limit_listed(self._visited)
        self._move(self._done)


@contextlib.contextmanager
def watched(limits: int, max_seconds: float | None) -> Iterator[ListingWatch]:
    """A bar over depth limits while the block runs; Ctrl-C ends the listing, not the program."""
    with (
        output.progress("depth", limits, remaining=False) as move,
        ends_on_interrupt("stopping: the last complete depth limit is kept") as interrupts,
    ):
        yield ListingWatch(move, max_seconds, interrupts)
