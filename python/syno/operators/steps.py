"""The steps of an operator as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from syno import _core

# The size of a dimension, and whether it is unordered and causal.
Dimension = tuple[str, bool, bool]


@dataclass(frozen=True)
class Step:
    """One step with its coordinates by name; `dims` as (coordinate, role)."""

    op: str
    inputs: tuple[str, ...] = ()
    out: tuple[str, ...] = ()
    size: str = ""
    amount: int = 0
    causal: bool = False
    dims: tuple[tuple[str, str], ...] = ()

    def renamed(self, names: Mapping[str, str]) -> Step:
        """The step with other names of the coordinates that it reads."""
        return dataclasses.replace(
            self,
            inputs=tuple(names.get(name, name) for name in self.inputs),
            dims=tuple((names.get(name, name), role) for name, role in self.dims),
        )


def steps_of(operator: _core.Operator) -> tuple[Step, ...]:
    """The steps of an operator, with the names of its coordinates: o0, o1, ... are the output's."""
    return tuple(
        Step(s.op, tuple(s.inputs), tuple(s.out), s.size, s.amount, s.causal, tuple(s.dims))
        for s in operator.steps
    )
