"""A store that says what each call costs: its time, its statements, and how long it locks."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from syno.store import Store
from syno.store.probe import Probe, probed

T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """What one call of a store took.

    seconds: by the clock; locked: of these, while it held the lock of the study, or on SQLite the
        lock of the database, which has one writer.
    messages: how often a server was asked and has answered; locked_messages: while locked.
    """

    seconds: float
    locked: float
    messages: int
    locked_messages: int

    def total(self, latency: float) -> float:
        """Return the seconds with a latency of each message in seconds."""
        return self.seconds + latency * self.messages

    def held(self, latency: float) -> float:
        """Return the seconds under the lock with a latency of each message in seconds."""
        return self.locked + latency * self.locked_messages


@contextlib.contextmanager
def measured(
    store: Store, timer: Callable[[], float] = time.perf_counter
) -> Iterator[Callable[[Callable[[], T]], tuple[T, Cost]]]:
    """Measure calls of a store, one after the other.

    Args:
        store: an open store, which one thread uses.
        timer: gives the time in seconds.

    Returns:
        A function of a call: what the call returns, and its cost.
    """
    with probed(store, timer) as probe:

        def measure(call: Callable[[], T]) -> tuple[T, Cost]:
            probe.reset()
            began = timer()
            found = call()
            return found, _cost(probe, timer() - began)

        yield measure


def _cost(probe: Probe, seconds: float) -> Cost:
    return Cost(seconds, probe.locked, probe.messages, probe.locked_messages)
