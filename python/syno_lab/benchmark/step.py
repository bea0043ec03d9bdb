"""A trial of a replay."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReplayStep:
    """A finished trial of a replay.

    ask: the number of the proposal; ended_s: the simulated time.
    value: the result that the method sees, greater is better; None for a failure.
    score: the true score of the operator (`Table.scores`).
    """

    ask: int
    key: str
    seed: int
    ended_s: float
    value: float | None
    score: float
