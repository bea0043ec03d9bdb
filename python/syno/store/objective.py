"""The objective of a study: the accuracy on images, or the loss on text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from syno._util import numbers


@dataclass(frozen=True)
class Objective:
    """A measure on the validation split, and how its values are compared and shown.

    name: `accuracy` or `loss`; also the field of a result that holds the value.
    unit: of a value; empty for a fraction, which is shown in percent.
    greater_is_better: whether a search maximizes it.
    """

    name: str
    unit: str
    greater_is_better: bool

    @property
    def is_share(self) -> bool:
        """Whether values are fractions from 0 to 1."""
        return not self.unit

    @property
    def title(self) -> str:
        """The label with the unit, capitalized: `Accuracy`, `Loss (nats a token)`."""
        return self.name.capitalize() + (f" ({self.unit})" if self.unit else "")

    @property
    def axis(self) -> str:
        """The label of an axis."""
        return f"validation {self.name}" + (f", {self.unit}" if self.unit else "")

    def score(self, value: float) -> float:
        """Return the value with the sign that makes greater values better."""
        return value if self.greater_is_better else -value

    def of(self, accuracy: float | None, details: Mapping[str, object]) -> float | None:
        """Return the value in a result; None if the result has none."""
        if self.name == "accuracy":
            return accuracy
        found = details.get(self.name)
        return float(found) if isinstance(found, (int, float)) else None

    def least(self, reference: float, points: float) -> float:
        """Return the worst value that is within `points` percent of a reference.

        It is an accuracy of `points` percentage points less, or a perplexity (the exponential of
        the loss) of `points` percent more.
        """
        if self.greater_is_better:
            return reference - points / 100
        return reference + math.log1p(points / 100)

    def shown(self, value: float | None) -> str:
        """Format a value: `93.1 %`, or a loss in nats per token, `1.823`."""
        if self.is_share or value is None:
            return numbers.percent(value)
        return f"{value:.3f}"

    def beside(self, value: float | None) -> str:
        """Format the perplexity of a loss: `perplexity 6.19`. Other values have no such text."""
        if self.is_share or value is None:
            return ""
        return f"perplexity {numbers.perplexity(value)}"

    def in_words(self, value: float | None) -> str:
        """Format a value for a sentence: `93.1 %`, or `a loss of 1.823 (perplexity 6.19)`."""
        beside = self.beside(value)
        return f"a {self.name} of {self.shown(value)} ({beside})" if beside else self.shown(value)

    def gap(self, value: float, reference: float) -> str:
        """Format a difference with its sign, in percentage points or in nats."""
        if self.is_share:
            return numbers.points(value - reference)
        return f"{value - reference:+.3f} nats".replace("-", "\N{MINUS SIGN}")

    def spread(self, deviation: float | None) -> str:
        """Format a standard deviation; an empty text for None."""
        if deviation is None:
            return ""
        return f"{100 * deviation:.1f} points" if self.is_share else f"{deviation:.3f} nats"


ACCURACY = Objective("accuracy", "", greater_is_better=True)
LOSS = Objective("loss", "nats a token", greater_is_better=False)


def named(name: str) -> Objective:
    """Return the objective with this name."""
    return {each.name: each for each in (ACCURACY, LOSS)}[name]


def objective_of(settings: Mapping[str, object]) -> Objective:
    """Return the objective of a study, which depends on the task of its recipe."""
    fidelity = settings.get("fidelity") if isinstance(settings, Mapping) else None
    recipe = fidelity.get("recipe") if isinstance(fidelity, Mapping) else None
    task = recipe.get("task") if isinstance(recipe, Mapping) else None
    return LOSS if task == "text" else ACCURACY
