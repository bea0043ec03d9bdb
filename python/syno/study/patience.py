"""Calls of the store that are repeated while its database cannot be reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from syno.store import UnavailableError

T = TypeVar("T")

# For how long a process of a search waits for its database.
PATIENCE_S = 600.0
_FIRST_S, _MOST_S = 0.5, 10.0  # between two attempts


def patiently(call: Callable[[], T], note: Callable[[str], None]) -> T:
    """Return what a call returns, which is repeated if the database cannot be reached.

    Args:
        call: may run several times, also if the first one succeeded and only its confirmation was
            lost.
        note: is called with the reason.

    Raises:
        UnavailableError: if the database cannot be reached for `PATIENCE_S` seconds.
    """
    until, pause = time.monotonic() + PATIENCE_S, _FIRST_S
    while True:
        try:
            return call()
        except UnavailableError as error:
            if time.monotonic() >= until:
                raise
            reason = str(error).splitlines()[0]
            note(f"{reason}\n  it is tried again for up to {PATIENCE_S / 60:g} minutes")
            time.sleep(pause)
            pause = min(2 * pause, _MOST_S)
