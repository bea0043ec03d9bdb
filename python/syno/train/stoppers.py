"""Reasons to stop a training before its end: small objects, each gives its reason as data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class State:
    """Where a training stands, after a step.

    `epoch` counts from 0, `step` from 1 within it. `loss` is this step's. `epoch_loss` is the mean
    over the second half of the epoch, given at its last step alone. `chance` is the loss of a
    uniform guess.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    epoch_loss: float | None
    chance: float
    seconds: float


@dataclass(frozen=True)
class Stop:
    """A stopper's verdict; becomes the outcome's status, reason and detail."""

    status: Literal["rejected", "timeout"]
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
class Deadline:
    """Stops when more than `limit_s` seconds have passed; looks between steps only."""

    limit_s: float

    def check(self, state: State) -> Stop | None:
        """See Stopper."""
        if state.seconds <= self.limit_s:
            return None
        where = f"step {state.step} of {state.steps}, epoch {state.epoch + 1} of {state.epochs}"
        return Stop("timeout", "deadline", f"the deadline of {self.limit_s:g} s passed at {where}")
