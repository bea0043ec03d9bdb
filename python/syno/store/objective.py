"""What operators of a study are judged by: the accuracy on images, the loss on text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from syno._util import numbers


@dataclass(frozen=True)
class Objective:
    """A measure on the hold-out split, and how its values are compared and shown.

    name: the label, `accuracy` or `loss`, and the field of an answer that holds it; unit: of a
    value, nothing for a share of one, which is shown in percent; greater_is_better: whether it is
    to be raised.
    """

    name: str
    unit: str
    greater_is_better: bool

    @property
    def is_share(self) -> bool:
        """Whether values are shares of one."""
        return not self.unit

    @property
    def title(self) -> str:
        """The label with the unit, as a sentence begins: `Accuracy`, `Loss (nats a token)`."""
        return self.name.capitalize() + (f" ({self.unit})" if self.unit else "")

    @property
    def axis(self) -> str:
        """What an axis of values is called."""
        return f"validation {self.name}" + (f", {self.unit}" if self.unit else "")

    def score(self, value: float) -> float:
        """The value so that greater is better: what a search raises."""
        return value if self.greater_is_better else -value

    def of(self, accuracy: float | None, details: Mapping[str, object]) -> float | None:
        """Its value in an answer; None where that has none."""
        if self.name == "accuracy":
            return accuracy
        found = details.get(self.name)
        return float(found) if isinstance(found, (int, float)) else None

    def least(self, reference: float, points: float) -> float:
        """The worst value that is within `points` percent of a reference: so many points of
        accuracy below it, or a perplexity (the exponential of the loss) so many percent above it.
        """
        if self.greater_is_better:
            return reference - points / 100
        return reference + math.log1p(points / 100)

    def shown(self, value: float | None) -> str:
        """A value: `93.1 %`, or a loss in nats a token, `1.823`."""
        if self.is_share or value is None:
            return numbers.percent(value)
        return f"{value:.3f}"

    def beside(self, value: float | None) -> str:
        """What is shown beside a value: `perplexity 6.19` beside a loss, else nothing."""
        if self.is_share or value is None:
            return ""
        return f"perplexity {numbers.perplexity(value)}"

    def in_words(self, value: float | None) -> str:
        """A value in a sentence: `93.1 %`, or `a loss of 1.823 (perplexity 6.19)`."""
        beside = self.beside(value)
        return f"a {self.name} of {self.shown(value)} ({beside})" if beside else self.shown(value)

    def gap(self, value: float, reference: float) -> str:
        """A difference with its sign: in points of accuracy, or in nats."""
        if self.is_share:
            return numbers.points(value - reference)
        return f"{value - reference:+.3f} nats".replace("-", "\N{MINUS SIGN}")

    def spread(self, deviation: float | None) -> str:
        """What stands behind a plus-minus sign; nothing for None."""
        if deviation is None:
            return ""
        return f"{100 * deviation:.1f} points" if self.is_share else f"{deviation:.3f} nats"


ACCURACY = Objective("accuracy", "", greater_is_better=True)
LOSS = Objective("loss", "nats a token", greater_is_better=False)


def named(name: str) -> Objective:
    """The objective with this name."""
    return {each.name: each for each in (ACCURACY, LOSS)}[name]


def objective_of(settings: Mapping[str, object]) -> Objective:
    """What a study with these settings is judged by: its recipe says what is trained on."""
    fidelity = settings.get("fidelity") if isinstance(settings, Mapping) else None
    recipe = fidelity.get("recipe") if isinstance(fidelity, Mapping) else None
    task = recipe.get("task") if isinstance(recipe, Mapping) else None
    return LOSS if task == "text" else ACCURACY
