"""The steps of an operator as plain data, and operators that are made of changed steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
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


def operator_of(
    output: Sequence[Dimension],
    input: Sequence[Dimension],
    steps: Sequence[Step],
    match: Sequence[str],
) -> _core.Operator:
    """The operator of these steps; match: the coordinate at which each input dimension is read.

    UserError for a step that cannot be applied, and for steps that do not lead to the input.
    """
    sizes = [*(size for size, _, _ in (*output, *input)), *(s.size for s in steps if s.size)]
    variables = sorted({name for size in sizes for name in _core.size_names(size)})
    graph = _core.Graph(variables, output)
    at = {f"o{place}": place for place in range(len(output))}
    for step in steps:
        inputs = [at[name] for name in step.inputs]
        dims = [(at[name], role) for name, role in step.dims]
        made = graph.apply(step.op, inputs, step.size, step.amount, step.causal, dims)
        at.update(zip(step.out, made, strict=True))
    return _core.Operator(graph, input, [at[name] for name in match])
