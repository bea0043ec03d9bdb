"""What a study measures and improves: accuracy, the loss of text, a custom metric, or a cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from syno._util import numbers


@dataclass(frozen=True)
class Objective:
    """A measure of results, with its unit and direction, and how its values are shown.

    name: `accuracy`, `loss`, or the name of a custom metric on the validation split; or of a cost.
    unit: of a value; empty if there is none.
    greater_is_better: whether a search maximizes it.
    is_share: whether values are fractions from 0 to 1, which are shown in percent.
    is_entropy: whether values are losses per token, to which a perplexity belongs.
    """

    name: str
    unit: str
    greater_is_better: bool
    is_share: bool = False
    is_entropy: bool = False

    def __str__(self) -> str:
        return f"{self.name}:{'max' if self.greater_is_better else 'min'}"

    @property
    def field(self) -> str:
        """The field of a result that holds the value: `accuracy` if it is maximized, or `loss`."""
        return "accuracy" if self.greater_is_better else "loss"

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
        if self.field == "accuracy":
            return accuracy
        found = details.get(self.field)
        return float(found) if isinstance(found, (int, float)) else None

    def least(self, reference: float, points: float) -> float:
        """Return the worst value that is within `points` percent of a reference.

        It is an accuracy of `points` percentage points less, a perplexity (the exponential of the
        loss) of `points` percent more, or a custom metric that is worse by `points` percent.
        """
        if self.is_share:
            return reference - points / 100
        if self.is_entropy:
            return reference + math.log1p(points / 100)
        margin = abs(reference) * points / 100
        return reference - margin if self.greater_is_better else reference + margin

    def shown(self, value: float | None) -> str:
        """Format a value: `93.1 %`, or a loss in nats per token, `1.823`."""
        if self.is_share or value is None:
            return numbers.percent(value)
        return f"{value:.3f}" if self.is_entropy else f"{value:.4g}"

    def beside(self, value: float | None) -> str:
        """Format the perplexity of a loss: `perplexity 6.19`. Other values have no such text."""
        if not self.is_entropy or value is None:
            return ""
        return f"perplexity {numbers.perplexity(value)}"

    def in_words(self, value: float | None) -> str:
        """Format a value for a sentence: `93.1 %`, or `a loss of 1.823 (perplexity 6.19)`."""
        if self.is_share or value is None:
            return self.shown(value)
        beside = self.beside(value)
        return f"a {self.name} of {self.shown(value)}" + (f" ({beside})" if beside else "")

    def gap(self, value: float, reference: float) -> str:
        """Format a difference with its sign, in percentage points or in nats."""
        if self.is_share:
            return numbers.points(value - reference)
        text = f"{value - reference:+.3f} nats" if self.is_entropy else f"{value - reference:+.4g}"
        return text.replace("-", "\N{MINUS SIGN}")

    def spread(self, deviation: float | None) -> str:
        """Format a standard deviation; an empty text for None."""
        if deviation is None:
            return ""
        if self.is_share:
            return f"{100 * deviation:.1f} points"
        return f"{deviation:.3f} nats" if self.is_entropy else f"{deviation:.4g}"


ACCURACY = Objective("accuracy", "", greater_is_better=True, is_share=True)
LOSS = Objective("loss", "nats a token", greater_is_better=False, is_entropy=True)


def named(name: str) -> Objective:
    """Return the objective with this name."""
    return {each.name: each for each in (ACCURACY, LOSS)}[name]


def objective_of(settings: Mapping[str, object]) -> Objective:
    """Return the objective of a study: its metric, or else that of the task of its recipe."""
    metric = settings.get("metric") if isinstance(settings, Mapping) else None
    if isinstance(metric, Mapping):
        name, maximize = str(metric.get("name")), bool(metric.get("maximize"))
        return ACCURACY if (name, maximize) == ("accuracy", True) else Objective(name, "", maximize)
    fidelity = settings.get("fidelity") if isinstance(settings, Mapping) else None
    recipe = fidelity.get("recipe") if isinstance(fidelity, Mapping) else None
    task = recipe.get("task") if isinstance(recipe, Mapping) else None
    return LOSS if task == "text" else ACCURACY
