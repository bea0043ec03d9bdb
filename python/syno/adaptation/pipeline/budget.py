"""The time of an adaptation (`hours`), divided over its phases.

The fine-tuning has a reserve, its share of the whole time, which nothing before it may plan with.
Of the rest, a phase may take its share of what is left for it and the phases after it. So a phase
that ends early leaves its time to the others, and one that takes longer takes it from them. The
time that earlier processes spent counts, too: it is in the journal.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from syno._util import numbers
from syno._util.errors import UserError
from syno.adaptation.pipeline.journal import AdaptationJournal

# Phases in their order, with their shares of the time.
SHARES = {
    "candidates": 0.18,
    "fits": 0.07,
    "scores": 0.12,
    "choice": 0.13,
    "fine-tuning": 0.5,
}
_LAST = "fine-tuning"
# The measurement of the original network comes first, and counts.
_COUNTED = ("original", *SHARES)
_HOURS = "hours"


class Budget:
    """How much time there is.

    hours: of all runs of the study together; None for what the study was started with, or else no
    limit.
    """

    def __init__(self, hours: float | None, journal: AdaptationJournal) -> None:
        if hours is not None and not 0.0 < hours < math.inf:
            raise UserError(f"'hours' is a number above 0, got {hours}")
        self._journal = journal
        known = journal.get(_HOURS, "")
        if hours is not None and hours != known:
            journal.change(_HOURS, "", hours)
        self.hours: float | None = hours or known

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return self.hours is not None

    def left(self, phase: str) -> float:
        """The seconds that a phase may still take; infinite without a limit."""
        if self.hours is None:
            return math.inf
        spent = self._journal.spent
        others = sum(spent(each) for each in _COUNTED if each != phase)
        if phase == _LAST:
            return max(3600.0 * self.hours - others - spent(phase), 0.0)
        before = list(SHARES)[list(SHARES).index(phase) : -1]
        share = SHARES[phase] / sum(SHARES[each] for each in before)
        return max(share * (self._before_last - others + spent(_LAST)) - spent(phase), 0.0)

    @property
    def _before_last(self) -> float:
        """The seconds of all phases without the reserve of the fine-tuning."""
        assert self.hours is not None
        return 3600.0 * self.hours * (1.0 - SHARES[_LAST])

    def until(self, phase: str, part: float = 1.0) -> Callable[[], bool]:
        """A function that tells whether this part of what is left for a phase is over."""
        if self.hours is None:
            return lambda: False
        end = time.perf_counter() + part * self.left(phase)
        return lambda: time.perf_counter() >= end

    def forecast(self) -> str:
        """The division in words; empty without a limit."""
        if self.hours is None:
            return ""
        spent = self._journal.spent
        left = max(3600.0 * self.hours - sum(map(spent, _COUNTED)), 0.0)
        begun = [place for place, phase in enumerate(SHARES) if spent(phase)]
        to_come = list(SHARES)[max(begun, default=0) :]
        others = sum(spent(each) for each in _COUNTED if each != _LAST)
        rest = min(max(self._before_last - others, 0.0), left)
        total = sum(SHARES[phase] for phase in to_come[:-1])
        seconds = {phase: rest * SHARES[phase] / total for phase in to_come[:-1]}
        seconds[_LAST] = left - sum(seconds.values())
        parts = ", ".join(f"{phase} {numbers.duration(each)}" for phase, each in seconds.items())
        return f"{numbers.duration(left)} are left: {parts}"
