"""When a study stops. Stoppers are small objects that combine with `|`; the reason is data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Tally:
    """How far a study is.

    evaluated: operators that were trained, well or not; rejected: those that were refused before;
    seconds: time spent over all runs; exhausted: the method has nothing left to propose;
    errors: how many of the latest operators, one after the other, ended in an error;
    due: evaluations at higher rungs of a ladder, and of the baseline, that are to be done before
    the study is.
    """

    evaluated: int
    rejected: int
    seconds: float
    exhausted: bool = False
    errors: int = 0
    due: int = 0


@dataclass(frozen=True)
class StopReason:
    """`name` is for programs, `text` for people."""

    name: str
    text: str


class Stopper(Protocol):
    """Says why to stop now, or None to go on."""

    def check(self, tally: Tally) -> StopReason | None:
        """Looks at the tally."""


class _Combining:
    def __or__(self, other: Stopper) -> AnyOf:
        return AnyOf(self, other)  # type: ignore[arg-type]


class AnyOf(_Combining):
    """Stops when any of several does; the first in order gives the reason."""

    def __init__(self, *stoppers: Stopper) -> None:
        self._stoppers = stoppers

    def check(self, tally: Tally) -> StopReason | None:
        """The first reason, in the order in which the stoppers were combined."""
        reasons = (stopper.check(tally) for stopper in self._stoppers)
        return next((reason for reason in reasons if reason), None)

    @property
    def evaluations(self) -> int | None:
        """The fewest operators that one of them stops after; None where none does."""
        limits = [getattr(stopper, "evaluations", None) for stopper in self._stoppers]
        return min((limit for limit in limits if limit is not None), default=None)


class Evaluations(_Combining):
    """Stops after `count` operators; those rejected before training do not count, and what is due
    at higher rungs of a ladder is done first."""

    def __init__(self, count: int) -> None:
        self.evaluations = count

    def check(self, tally: Tally) -> StopReason | None:
        """`evaluations` when enough were evaluated."""
        if tally.evaluated < self.evaluations or tally.due:
            return None
        return StopReason(
            "evaluations", f"{tally.evaluated} operators were evaluated, as requested"
        )


class Seconds(_Combining):
    """Stops after `limit` seconds, over all runs of the study; a running evaluation is finished."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def check(self, tally: Tally) -> StopReason | None:
        """`seconds` when the time is up."""
        if tally.seconds < self._limit:
            return None
        return StopReason("seconds", f"the time limit of {self._limit:g} s is reached")


class ErrorsInARow(_Combining):
    """Stops after `count` errors one after the other: not the operators are wrong then."""

    def __init__(self, count: int) -> None:
        self._count = count

    def check(self, tally: Tally) -> StopReason | None:
        """`errors` when nothing works any more."""
        if tally.errors < self._count:
            return None
        return StopReason("errors", f"the last {tally.errors} operators all ended in an error")


class SpaceExhausted(_Combining):
    """Stops when every operator was proposed."""

    def check(self, tally: Tally) -> StopReason | None:
        """`exhausted` when the method has nothing left."""
        if not tally.exhausted:
            return None
        total = tally.evaluated + tally.rejected
        return StopReason("exhausted", f"all {total} operators of the space were proposed")
