"""Calls that may take long in a large study, and that need not be made each time."""

from __future__ import annotations

import time
from collections.abc import Callable

# Such calls take at most one part of so many of the time.
_PARTS = 20
# A call that takes less than this is always made.
_SHORT_S = 0.05


class Sparingly:
    """Makes a call, unless the last one took long and ended a short time ago.

    A later call has to do what one that was left out would have done.
    """

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, call: Callable[[], object]) -> None:
        """Make the call, or leave it out."""
        began = time.monotonic()
        if began < self._next:
            return
        call()
        ended = time.monotonic()
        took = ended - began
        self._next = ended + _PARTS * took if took > _SHORT_S else 0.0
