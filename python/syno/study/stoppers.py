"""Conditions that stop a study. Stoppers combine with `|` (either) and `&` (both)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from syno._util import numbers


@dataclass(frozen=True)
class Tally:
    """The progress of a study.

    evaluated: operators whose training completed or failed.
    rejected: operators that were rejected before training.
    seconds: wall-clock time of all runs.
    exhausted: whether the method has no operator left to propose.
    errors: the number of consecutive errors among the latest operators.
    due: evaluations at higher rungs, and of the baseline, that the study has to do before it stops.
    stale: the number of latest operators without progress: of the best result, or with several
        objectives of the hypervolume. It is counted if the study has a limit of it, or its stopper
        has a true attribute `looks_at_progress`.
    """

    evaluated: int
    rejected: int
    seconds: float
    exhausted: bool = False
    errors: int = 0
    due: int = 0
    stale: int = 0


@dataclass(frozen=True)
class StopReason:
    """Why a study stopped: a name for programs, and a text for people."""

    name: str
    text: str


class StudyStopper(Protocol):
    """A condition that stops a study."""

    def check(self, tally: Tally) -> StopReason | None:
        """Return why to stop now, or None to continue."""


class _Combining:
    looks_at_progress = False

    def __or__(self, other: StudyStopper) -> AnyOf:
        return AnyOf(self, other)  # type: ignore[arg-type]

    def __and__(self, other: StudyStopper) -> AllOf:
        return AllOf(self, other)  # type: ignore[arg-type]


class AnyOf(_Combining):
    """Stops when any of several stoppers does; the first of them gives the reason."""

    def __init__(self, *stoppers: StudyStopper) -> None:
        self._stoppers = stoppers
        self.looks_at_progress = _look_at_progress(stoppers)

    def check(self, tally: Tally) -> StopReason | None:
        """Return the first reason, in the order in which the stoppers were combined."""
        reasons = (stopper.check(tally) for stopper in self._stoppers)
        return next((reason for reason in reasons if reason), None)

    @property
    def evaluations(self) -> int | None:
        """The number of operators that the study stops after; None without such a limit."""
        limits = [getattr(stopper, "evaluations", None) for stopper in self._stoppers]
        return min((limit for limit in limits if limit is not None), default=None)


def _look_at_progress(stoppers: Iterable[StudyStopper]) -> bool:
    return any(getattr(stopper, "looks_at_progress", False) for stopper in stoppers)


class AllOf(_Combining):
    """Stops when all of several stoppers do; the last of them gives the name of the reason."""

    def __init__(self, *stoppers: StudyStopper) -> None:
        self._stoppers = stoppers
        self.looks_at_progress = _look_at_progress(stoppers)

    def check(self, tally: Tally) -> StopReason | None:
        """Return the reasons as one, if every stopper has one."""
        reasons = [stopper.check(tally) for stopper in self._stoppers]
        found = [reason for reason in reasons if reason]
        if not found or len(found) < len(reasons):
            return None
        return StopReason(found[-1].name, ", and ".join(reason.text for reason in found))


class Evaluations(_Combining):
    """Stops after `count` operators and the evaluations that are due at higher rungs.

    Operators that are rejected before training do not count.
    """

    def __init__(self, count: int) -> None:
        self.evaluations = count

    def check(self, tally: Tally) -> StopReason | None:
        """Return the reason `evaluations` if enough operators were evaluated."""
        if tally.evaluated < self.evaluations or tally.due:
            return None
        return StopReason(
            "evaluations",
            f"{numbers.counted(tally.evaluated, 'operator')} "
            f"{'was' if tally.evaluated == 1 else 'were'} evaluated, as requested",
        )


class Seconds(_Combining):
    """Stops after `limit` seconds of all runs together, at the end of the running evaluation."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def check(self, tally: Tally) -> StopReason | None:
        """Return the reason `seconds` if the time limit is reached."""
        if tally.seconds < self._limit:
            return None
        text = f"the time limit of {self._limit:g} s is reached"
        if not tally.evaluated:
            text += (
                ", and no operator was evaluated: the limit is shorter than the baseline and one "
                "trial take\n  what to do: resume the study with a longer limit (--seconds)"
            )
        return StopReason("seconds", text)


class NoProgress(_Combining):
    """Stops after `count` operators without progress, at the end of evaluations that are due."""

    looks_at_progress = True

    def __init__(self, count: int) -> None:
        self._count = count

    def check(self, tally: Tally) -> StopReason | None:
        """Return the reason `no_progress` if the latest operators improved nothing."""
        if tally.stale < self._count or tally.due:
            return None
        return StopReason("no_progress", f"the last {tally.stale} operators improved nothing")


class ErrorsInARow(_Combining):
    """Stops after `count` consecutive errors, because their cause is not in the operators."""

    def __init__(self, count: int) -> None:
        self._count = count

    def check(self, tally: Tally) -> StopReason | None:
        """Return the reason `errors` if the latest operators ended in errors."""
        if tally.errors < self._count:
            return None
        return StopReason("errors", f"the last {tally.errors} operators all ended in an error")


class SpaceExhausted(_Combining):
    """Stops when the study has proposed every operator."""

    def check(self, tally: Tally) -> StopReason | None:
        """Return the reason `exhausted` if the method has no operator left."""
        if not tally.exhausted:
            return None
        total = tally.evaluated + tally.rejected
        return StopReason("exhausted", f"all {total} operators of the space were proposed")
