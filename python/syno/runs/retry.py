"""Attempts that are made again: how long to wait between them, and when to give up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

# For how long something that cannot be reached is waited for.
MOST_WAIT_S = 600.0
_FIRST_S, _MOST_S = 0.5, 10.0  # between two attempts


def pauses(first_s: float, most_s: float) -> Iterator[float]:
    """Pauses before the second attempt and all later ones: each twice as long as the one before."""
    while True:
        yield min(first_s, most_s)
        first_s *= 2


def retried(call: Callable[[], T], note: Callable[[str], None], lost: type[Exception]) -> T:
    """Return what a call returns, which is repeated as long as it fails in one way.

    Args:
        call: may run several times, also if the first one succeeded and only its confirmation was
            lost.
        note: is called with the reason.
        lost: the exception after which the call is repeated. After `MOST_WAIT_S` seconds, it is
            raised.
    """
    until, waits = time.monotonic() + MOST_WAIT_S, pauses(_FIRST_S, _MOST_S)
    while True:
        try:
            return call()
        except lost as error:
            if time.monotonic() >= until:
                raise
            reason = str(error).splitlines()[0]
            note(f"{reason}\n  it is tried again for up to {MOST_WAIT_S / 60:g} minutes")
            time.sleep(next(waits))
