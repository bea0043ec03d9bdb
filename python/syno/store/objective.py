"""What operators of a study are judged by: the accuracy on images, the loss on text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Objective:
    """A measure on the hold-out split.

    name: `accuracy` (a fraction) or `loss` (nats a token; lower is better).
    """

    name: str

    @property
    def greater_is_better(self) -> bool:
        """Whether it is to be raised."""
        return self.name == "accuracy"

    def score(self, value: float) -> float:
        """The value so that greater is better: what a search raises."""
        return value if self.greater_is_better else -value

    def of(self, accuracy: float | None, details: Mapping[str, Any]) -> float | None:
        """Its value in an answer; None where that has none."""
        if self.name == "accuracy":
            return accuracy
        found = details.get(self.name)
        return None if found is None else float(found)

    def least(self, reference: float, points: float) -> float:
        """The worst value that is within `points` percent of a reference: so many points of
        accuracy below it, or a perplexity (the exponential of the loss) so many percent above it.
        """
        if self.greater_is_better:
            return reference - points / 100
        return reference + math.log1p(points / 100)


ACCURACY = Objective("accuracy")
LOSS = Objective("loss")


def objective_of(settings: Mapping[str, Any]) -> Objective:
    """What a study with these settings is judged by: its recipe says what is trained on."""
    fidelity = settings.get("fidelity") if isinstance(settings, Mapping) else None
    recipe = fidelity.get("recipe") if isinstance(fidelity, Mapping) else None
    task = recipe.get("task") if isinstance(recipe, Mapping) else None
    return LOSS if task == "text" else ACCURACY
