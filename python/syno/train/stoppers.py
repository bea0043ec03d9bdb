"""Conditions that stop a training early."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Literal, Protocol


@dataclass(frozen=True)
class State:
    """The progress of a training after a step.

    epoch: the current epoch, from 0.
    epochs: their number; 0 if a time limit ends the training.
    step: the step in the epoch, from 1; steps: their number.
    loss: of this step.
    epoch_loss: the mean loss of the second half of the epoch; None before the last step of it.
    chance: the loss of a uniform guess.
    seconds: since the start of the training.
    accuracy: on the validation split, if it was measured after this step.
    recent_loss: the mean loss of the last 50 steps; None before them.
    step_s: the median time of the last steps in seconds; None before the fifth step.
    memory: bytes of the process, or on a GPU of tensors.
    done: the completed share of the training, from 0 to 1.
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
    """Why a stopper stops a training: status, reason and detail of the outcome."""

    status: Literal["rejected", "timeout", "paused"]
    reason: str
    detail: str


class TrainingStopper(Protocol):
    """A condition that is checked after every step."""

    def check(self, state: State) -> Stop | None:
        """Return why to stop the training, or None to continue."""


@dataclass(frozen=True)
class NonFinite:
    """Stops at a loss that is NaN or infinite."""

    def check(self, state: State) -> Stop | None:
        """See `TrainingStopper`."""
        if math.isfinite(state.loss):
            return None
        where = f"step {state.step} of epoch {state.epoch + 1}"
        return Stop("rejected", "non_finite_loss", f"the loss is {state.loss} at {where}")


@dataclass(frozen=True)
class AboveChance:
    """Stops after an epoch whose loss is above `factor` times that of a uniform guess."""

    factor: float = 1.5

    def check(self, state: State) -> Stop | None:
        """See `TrainingStopper`."""
        if state.epoch_loss is None or state.epoch_loss <= self.factor * state.chance:
            return None
        return Stop(
            "rejected",
            "loss_above_chance",
            f"the loss is {state.epoch_loss:.3g} after epoch {state.epoch + 1}, "
            f"and a uniform guess gives {state.chance:.3g}",
        )


@dataclass(frozen=True)
class Diverging:
    """Stops when the mean loss of the last 50 steps is above `factor` times a uniform guess's."""

    factor: float = 3.0

    def check(self, state: State) -> Stop | None:
        """See `TrainingStopper`."""
        if state.recent_loss is None or state.recent_loss <= self.factor * state.chance:
            return None
        return Stop(
            "rejected",
            "diverging",
            f"the mean loss of 50 steps is {state.recent_loss:.3g} at step {state.step} of epoch "
            f"{state.epoch + 1}, and a uniform guess gives {state.chance:.3g}",
        )


@dataclass(frozen=True)
class LeastAccuracy:
    """Stops after an epoch of the table if the validation accuracy is below that of the table."""

    table: tuple[tuple[int, float], ...]

    def check(self, state: State) -> Stop | None:
        """See `TrainingStopper`."""
        least = dict(self.table).get(state.epoch + 1)
        if state.accuracy is None or least is None or state.accuracy >= least:
            return None
        return Stop(
            "rejected",
            "below_least_accuracy",
            f"the accuracy is {state.accuracy:.3f} after epoch {state.epoch + 1}, and at "
            f"least {least:g} is required",
        )


@dataclass(frozen=True)
class SlowStep:
    """Stops when a step takes more than `limit_s` seconds (the median of the last ones)."""

    limit_s: float

    def check(self, state: State) -> Stop | None:
        """See `TrainingStopper`."""
        if state.step_s is None or state.step_s <= self.limit_s:
            return None
        detail = f"a step takes {state.step_s:.3g} s, more than {self.limit_s:g} s"
        return Stop("rejected", "slow_step", detail)


@dataclass(frozen=True)
class MemoryLimit:
    """Stops when more than `limit_bytes` of memory are in use between two steps."""

    limit_bytes: int

    def check(self, state: State) -> Stop | None:
        """See `TrainingStopper`."""
        if state.memory <= self.limit_bytes:
            return None
        used, limit = (value / 2**20 for value in (state.memory, self.limit_bytes))
        return Stop(
            "rejected",
            "memory",
            f"{used:,.0f} MiB of memory are in use, more than {limit:,.0f} MiB",
        )


@dataclass(frozen=True)
class TimeLimit:
    """Stops after the step in which `limit_s` seconds have passed."""

    limit_s: float

    def check(self, state: State) -> Stop | None:
        """See `TrainingStopper`."""
        if state.seconds <= self.limit_s:
            return None
        where = f"step {state.step} of {state.steps}, epoch {state.epoch + 1}"
        where += f" of {state.epochs}" if state.epochs else ""
        return Stop("timeout", "deadline", f"the deadline of {self.limit_s:g} s passed at {where}")


@dataclass(frozen=True)
class ProcessorTimeLimit:
    """Stops after the step in which the process has used more processor time than a limit.

    Unlike a `TimeLimit`, it does not depend on what else runs on the machine, nor on pauses.

    limit_s: seconds of processor time of all threads of the process; began: `time.process_time()`
        at the beginning of the training.
    """

    limit_s: float
    began: float = field(default_factory=time.process_time)

    def check(self, state: State) -> Stop | None:
        """See `TrainingStopper`."""
        if time.process_time() - self.began <= self.limit_s:
            return None
        return Stop(
            "timeout",
            "deadline",
            f"{self.limit_s:g} s of processor time passed at step {state.step} of {state.steps}",
        )


# What stops a training that does not name its own stoppers.
DEFAULT_STOPPERS: tuple[TrainingStopper, ...] = (NonFinite(), AboveChance(), Diverging())
