"""One answered proposal of a study, as what reads a store sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from syno.operators.summary import short_id
from syno.store.documents import Details, RunRecipe
from syno.store.objective import ACCURACY, Objective
from syno.store.records import FLOAT32, REJECTED, Environment


@dataclass(frozen=True, repr=False)
class Evaluation:
    """One answered proposal. Units as in `Outcome`; `ask` counts the operators from 1.

    key and text are None for the baseline, whose latency stands in the same fields with ratio 1.
    rung_index: of a ladder, from 0 at the bottom; `rung` is the fidelity's name.
    precision: `float32`, or `int8` for a trained network that was quantized.
    objective: of the study, which gives the value its name.
    """

    ask: int
    kind: str
    key: str | None
    text: str | None
    status: str
    reason: str
    accuracy: float | None
    split: str
    rung: str
    recipe: RunRecipe
    seed: int
    macs: int | None
    params: int | None
    primitives: dict[str, int]
    latency_ms: float | None
    latency_spread_ms: float | None
    latency_ratio: float | None
    baseline_latency_ms: float | None
    source_hash: str | None
    seconds: float
    finished: str
    environment: Environment
    details: Details = field(default_factory=Details)
    rung_index: int = 0
    objective: Objective = ACCURACY

    def __repr__(self) -> str:
        parts = [f"{short_id(self.text, self.key) or self.kind} {self.status}"]
        values = {self.objective.name: self.value}
        if self.objective.is_share or self.objective.is_entropy:
            values |= {"accuracy": self.accuracy, "loss": self.details.get("loss")}
        parts += [f"{name} {value:.4g}" for name, value in values.items() if value is not None]
        if self.latency_ms is not None:
            parts.append(f"{self.latency_ms:.3g} ms")
        return f"<trial {self.ask}: {', '.join([*parts, *[self.reason][: bool(self.reason)]])}>"

    @property
    def value(self) -> float | None:
        """The value of the objective; None if the evaluation has none."""
        return self.objective.of(self.accuracy, self.details)

    @property
    def precision(self) -> str:
        """What the network computes in."""
        return str(self.recipe.get("precision", FLOAT32))

    @property
    def is_evaluated(self) -> bool:
        """Whether it counts against the study's limit: all but what was refused before training."""
        return self.status != REJECTED or bool(self.rung)
