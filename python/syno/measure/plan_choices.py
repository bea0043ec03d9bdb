"""The plans by which operators are exported."""

from __future__ import annotations

from typing import TypedDict

from syno._util.errors import UserError
from syno.measure.plans import EMITTERS, choose_plan
from syno.operators.layer import Layer
from syno.operators.operator import Operator


class PlanRow(TypedDict):
    """The plan that was chosen under a binding, and how many times as fast as the first it is."""

    binding: dict[str, int]
    number: int
    speedup: float


class PlanChoices:
    """The plans of operators that are written: the fastest by measurement, or the cheapest.

    name, emitter: of the format that is written; limit: of so many plans the fastest is chosen,
    None for the cheapest without a measurement; found: what was chosen, with its speed-up.
    """

    def __init__(
        self, name: str, emitter: str, limit: int | None, threads: int, fold_weights: bool
    ) -> None:
        if limit is not None and emitter not in EMITTERS:
            raise UserError(
                f"plans cannot be timed here as the format '{name}' runs them\n"
                "  what to do: leave --measure-plans out, or choose another format, such as cpp"
            )
        self._emitter, self._limit = emitter, limit
        self._threads, self._fold_weights = threads, fold_weights
        self.found: list[PlanRow] = []

    def of(self, operator: Operator, binding: dict[str, int]) -> int:
        """The number of the plan of an operator under a binding."""
        if self._limit is None:
            return 1
        choice = choose_plan(
            operator,
            binding,
            emitter=self._emitter,
            limit=self._limit,
            threads=self._threads,
            fold_weights=self._fold_weights,
        )
        row: PlanRow = {
            "binding": choice.binding,
            "number": choice.number,
            "speedup": choice.speedup,
        }
        if row not in self.found:
            self.found.append(row)
        return choice.number

    def of_layer(self, layer: Layer) -> int:
        """That of an operator in a network."""
        return self.of(Operator.from_text(layer.operator.text), layer.binding)
