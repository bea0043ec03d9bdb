"""Which outputs of an operator to compare."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from syno import _core
from syno.operators.json_form import StepForm
from syno.operators.operator import Operator

# At least and at most so many outputs of a large operator are compared.
LEAST, MOST = 256, 4096


def batch_variables(operator: Operator) -> list[str]:
    """Variables that are the size of a dimension which passes through untouched, and nothing else.

    Emitted code takes any size there.
    """
    data = operator.to_json()
    touched = {name for step in data["steps"] for name in step_inputs(step)}
    sizes = [*operator.input, *operator.output, *(_step_size(step) for step in data["steps"])]
    found = []
    for dim, name in zip(operator.input, data["match"], strict=True):
        passes = name.startswith("o") and name not in touched
        uses = sum(dim in _core.size_names(size) for size in sizes if size)
        if passes and dim in operator.variables and uses == 2:
            found.append(dim)
    return found


def step_inputs(step: StepForm) -> list[str]:
    """The coordinates a step of the JSON form uses."""
    source = step.get("in", [])
    dims = [name for name, _ in step.get("dims", [])]
    return [source, *dims] if isinstance(source, str) else [*source, *dims]


def _step_size(step: StepForm) -> str:
    return str(step.get("size") or step.get("block") or step.get("S") or "")


def output_positions(
    shape: Sequence[int], terms: int, budget: int, random: np.random.Generator
) -> list[int]:
    """Row-major positions of an output of this shape that take about `budget` terms.

    All of them when they fit into the budget. Otherwise the borders: every combination of first,
    second, middle, last but one and last index of the dimensions, or a sample of them; then random
    positions, half of them moved to a border of a random dimension.
    """
    count = math.prod(shape)
    if terms <= budget:
        return list(range(count))
    wanted = min(count, max(LEAST, min(MOST, budget * count // terms)))
    lattice = [sorted({0, 1, n // 2, n - 2, n - 1} & set(range(n))) for n in shape]
    borders = math.prod(len(choices) for choices in lattice)
    if borders <= wanted // 2:
        chosen = [list(index) for index in itertools.product(*lattice)]
    else:
        chosen = [[int(random.choice(choices)) for choices in lattice] for _ in range(wanted // 2)]
    for number in range(wanted - len(chosen)):
        index = [int(random.integers(n)) for n in shape]
        if number % 2 and shape:
            d = int(random.integers(len(shape)))
            index[d] = int(random.choice((0, shape[d] - 1)))
        chosen.append(index)
    return sorted({int(np.ravel_multi_index(index, tuple(shape))) for index in chosen})
