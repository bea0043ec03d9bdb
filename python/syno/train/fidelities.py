"""Fidelities: how much data, at which resolution and for how long a network is trained, as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from syno._errors import UserError


@dataclass(frozen=True)
class Fidelity:
    """One rung and its recipe. Two outcomes compare only when their fidelities are equal.

    images: training images drawn, stratified and always the same ones; None means all that are not
        held out.
    resolution: height and width in pixels; the data set must be loaded at it.
    batch: images a step.    learning_rate: of SGD with Nesterov momentum, at its peak.
    weight_decay: not applied to normalisation layers and biases.
    warmup: share of the steps in which the rate rises linearly; a half cosine to 0 follows.
    clip_norm: greatest norm of the gradient of all parameters together.
    crop: pixels by which an image is shifted at random; the rest shows the mean colour.
    flip: mirror half of the images left to right.
    holdout: share of the training split that quality is measured on, drawn by `split_seed`.
    """

    name: str
    images: int | None
    resolution: int
    epochs: int
    batch: int
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    warmup: float = 0.15
    label_smoothing: float = 0.0
    clip_norm: float = 5.0
    crop: int = 0
    flip: bool = False
    holdout: float = 0.1
    split_seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("resolution", 1), ("epochs", 1), ("batch", 2), ("crop", 0)):
            self._whole(name, getattr(self, name), least)
        if self.images is not None:
            self._whole("images", self.images, 2)
        for name, low, high in (
            ("momentum", 0.0, 1.0),
            ("warmup", 0.0, 1.0),
            ("label_smoothing", 0.0, 1.0),
            ("weight_decay", 0.0, float("inf")),
        ):
            value = getattr(self, name)
            if not low <= value < high:
                self._refuse(name, value, f"at least {low} and below {high}")
        for name, high in (
            ("learning_rate", float("inf")),
            ("clip_norm", float("inf")),
            ("holdout", 1.0),
        ):
            value = getattr(self, name)
            if not 0.0 < value < high:
                self._refuse(name, value, f"above 0 and below {high}")

    def to_json(self) -> dict[str, Any]:
        """All fields, for storage and comparison."""
        return asdict(self)

    @staticmethod
    def from_json(fields: dict[str, Any]) -> Fidelity:
        """The inverse of `to_json`. Raises UserError for an unknown or missing field."""
        try:
            return Fidelity(**fields)
        except TypeError as error:
            raise UserError(
                f"cannot read a fidelity: {error}\n  got: {', '.join(fields)}"
            ) from error

    def _whole(self, name: str, value: object, least: int) -> None:
        if not (isinstance(value, int) and value >= least):
            self._refuse(name, value, f"a whole number of at least {least}")

    def _refuse(self, name: str, value: object, expected: str) -> None:
        raise UserError(
            f"fidelity '{self.name}' cannot have {name} = {value!r}\n  expected: {expected}"
        )


# Recipes are tuned for the short budgets they are for: at 3 epochs random shifts cost 2 points (the
# network is still under-fitted), and half of the peak rate costs 1 to 2.
FIDELITIES: tuple[Fidelity, ...] = (
    # A quarter is held out: 359 images, so one of them is 0.28 points.
    Fidelity("digits", None, 8, epochs=6, batch=32, crop=1, holdout=0.25),
    Fidelity("tiny", 10_000, 16, epochs=3, batch=64, learning_rate=0.2, warmup=0.2, flip=True),
    Fidelity("small", 10_000, 32, epochs=3, batch=64, learning_rate=0.2, warmup=0.2, flip=True),
    Fidelity("medium", 45_000, 16, epochs=3, batch=64, learning_rate=0.2, warmup=0.2, flip=True),
)


def fidelity(name: str) -> Fidelity:
    """A named fidelity. Raises UserError that lists what exists."""
    for entry in FIDELITIES:
        if entry.name == name:
            return entry
    raise UserError(
        f"unknown fidelity '{name}'\n"
        f"  expected one of: {', '.join(entry.name for entry in FIDELITIES)}"
    )
