"""Reasons to stop a training before its end: small objects, each gives its reason as data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class State:
    """Where a training stands, after a step.

    `epoch` counts from 0, `step` from 1 within it. `loss` is this step's. `epoch_loss` is the mean
    over the second half of the epoch, given at its last step alone; so is `accuracy`, on the
    hold-out split, where it was measured after this epoch. `chance` is the loss of a uniform
    guess. `recent_loss` is the mean of the last 50 steps, None before them. `step_s` is the median
    time of the last steps in seconds, None before the fifth. `memory` is what the process holds in
    bytes, or on a GPU what tensors hold. `epochs` is 0 where a time limit ends the training, and
    `done` is the share of it that is over, 0 to 1.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    epoch_loss: float | None
    chance: float
    seconds: float
    accuracy: float | None = None
    recent_loss: float | None = None
    step_s: float | None = None
    memory: int = 0
    done: float = 0.0


@dataclass(frozen=True)
class Stop:
    """A stopper's verdict; becomes the outcome's status, reason and detail."""

    status: Literal["rejected", "timeout", "paused"]
    reason: str
    detail: str


class Stopper(Protocol):
    """Looks at every step; a Stop ends the training."""

    def check(self, state: State) -> Stop | None:
        """None to go on."""


@dataclass(frozen=True)
class NonFinite:
    """Stops at a loss that is NaN or infinite."""

    def check(self, state: State) -> Stop | None:
        """See Stopper."""
        if math.isfinite(state.loss):
            return None
        where = f"step {state.step} of epoch {state.epoch + 1}"
        return Stop("rejected", "non_finite_loss", f"the loss is {state.loss} at {where}")


@dataclass(frozen=True)
class AboveChance:
    """Stops after an epoch whose loss is above `factor` times that of a uniform guess."""

    factor: float = 1.5

    def check(self, state: State) -> Stop | None:
        """See Stopper."""
        if state.epoch_loss is None or state.epoch_loss <= self.factor * state.chance:
            return None
        return Stop(
            "rejected",
            "loss_above_chance",
            f"the loss is {state.epoch_loss:.3g} after epoch {state.epoch + 1}, "
            f"a uniform guess gives {state.chance:.3g}",
        )


@dataclass(frozen=True)
class Diverging:
    """Stops when the mean loss of the last 50 steps is above `factor` times a uniform guess's."""

    factor: float = 3.0

    def check(self, state: State) -> Stop | None:
        """See Stopper."""
        if state.recent_loss is None or state.recent_loss <= self.factor * state.chance:
            return None
        return Stop(
            "rejected",
            "diverging",
            f"the mean loss of 50 steps is {state.recent_loss:.3g} at step {state.step} of epoch "
            f"{state.epoch + 1}, a uniform guess gives {state.chance:.3g}",
        )


@dataclass(frozen=True)
class LeastAccuracy:
    """Stops after an epoch of the table whose hold-out accuracy is below what stands there."""

    table: tuple[tuple[int, float], ...]

    def check(self, state: State) -> Stop | None:
        """See Stopper."""
        least = dict(self.table).get(state.epoch + 1)
        if state.accuracy is None or least is None or state.accuracy >= least:
            return None
        return Stop(
            "rejected",
            "below_least_accuracy",
            f"the accuracy is {state.accuracy:.3f} after epoch {state.epoch + 1}, at least "
            f"{least:g} is required",
        )


@dataclass(frozen=True)
class SlowStep:
    """Stops when a step takes more than `limit_s` seconds (the median of the last ones)."""

    limit_s: float

    def check(self, state: State) -> Stop | None:
        """See Stopper."""
        if state.step_s is None or state.step_s <= self.limit_s:
            return None
        detail = f"a step takes {state.step_s:.3g} s, more than {self.limit_s:g} s"
        return Stop("rejected", "slow_step", detail)


@dataclass(frozen=True)
class MemoryLimit:
    """Stops when more than `limit_bytes` are held between two steps."""

    limit_bytes: int

    def check(self, state: State) -> Stop | None:
        """See Stopper."""
        if state.memory <= self.limit_bytes:
            return None
        held, limit = (value / 2**20 for value in (state.memory, self.limit_bytes))
        return Stop(
            "rejected",
            "memory",
            f"{held:,.0f} MiB of memory are in use, more than {limit:,.0f} MiB",
        )


@dataclass(frozen=True)
class Deadline:
    """Stops when more than `limit_s` seconds have passed; looks between steps only."""

    limit_s: float

    def check(self, state: State) -> Stop | None:
        """See Stopper."""
        if state.seconds <= self.limit_s:
            return None
        where = f"step {state.step} of {state.steps}, epoch {state.epoch + 1}"
        where += f" of {state.epochs}" if state.epochs else ""
        return Stop("timeout", "deadline", f"the deadline of {self.limit_s:g} s passed at {where}")
