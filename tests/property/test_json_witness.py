"""An evaluator of the JSON form in plain Python, written from docs/operators.md alone.

It shares nothing with the C++ interpreter: where the two agree on random operators, both read the
semantics the same way.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from syno import Operator, _core

Json = dict[str, Any]


def extent(size: str, binding: dict[str, int]) -> int:
    value = 1.0
    for factor in size.split("*"):
        name, _, power = factor.partition("^")
        value *= 1 if name == "1" else float(binding[name]) ** int(power or 1)
    assert round(value) == pytest.approx(value)
    return round(value)


def evaluate(form: Json, binding: dict[str, int], x: np.ndarray, weights: list[np.ndarray]):
    """y[o] = sum over r of mask * x[...] * product of weights, one term at a time."""
    extents = {f"o{d}": extent(dim["size"], binding) for d, dim in enumerate(form["out"])}
    sums = [step["out"] for step in form["steps"] if step["op"] == "reduce"]
    for step in form["steps"]:
        if step["op"] == "reduce":
            extents[step["out"]] = extent(step["size"], binding)
    outputs = [f"o{d}" for d in range(len(form["out"]))]
    y = np.zeros([extents[name] for name in outputs], dtype=np.int64)
    loops = outputs + sums
    for point in itertools.product(*(range(extents[name]) for name in loops)):
        value, size, held, seen = dict(zip(loops, point, strict=True)), dict(extents), [], True
        for step in form["steps"]:
            op = step["op"]
            if op == "split":
                i, j = step["in"]
                value[step["out"]] = size[j] * value[i] + value[j]
                size[step["out"]] = size[i] * size[j]
            elif op == "merge":
                block, i = extent(step["block"], binding), step["in"]
                q, m = step["out"]
                value[q], value[m] = value[i] // block, value[i] % block
                size[q], size[m] = size[i] // block, block
            elif op == "shift":
                i = step["in"]
                value[step["out"]] = (value[i] + step["d"]) % size[i]
                size[step["out"]] = size[i]
            elif op == "unfold":
                i, j = step["in"]
                back = size[j] - 1 if step.get("causal") else size[j] // 2
                value[step["out"]] = value[i] + value[j] - back
                size[step["out"]] = size[i]
                seen = 0 <= value[step["out"]] < size[i]
                if not seen:
                    break
            elif op == "stride":
                factor, i = extent(step["S"], binding), step["in"]
                value[step["out"]] = factor * value[i]
                size[step["out"]] = factor * size[i]
            elif op == "contract":
                held.append(tuple(value[name] for name, _ in step["dims"]))
            else:
                assert op in ("reduce", "expand")
        if not seen:
            continue
        term = int(x[tuple(value[name] for name in form["match"])])
        for index, weight in zip(held, weights, strict=True):
            term *= int(weight[index])
        y[point[: len(outputs)]] += term
    return y


@pytest.mark.parametrize("seed", range(150))
def test_the_interpreter_agrees_with_plain_python(seed: int) -> None:
    drawn, values = _core.random_operator(seed, max_terms=2000, causal_windows=0.2)
    operator = Operator.from_text(drawn.text)
    binding = {name: values[name] for name in operator.variables}
    random = np.random.default_rng(seed)
    form = operator.to_json()
    x = random.integers(-4, 5, operator.shapes(binding).input)
    weights = [random.integers(-4, 5, shape) for shape in operator.weight_shapes(binding)]
    expected = evaluate(form, binding, x, weights)
    np.testing.assert_array_equal(operator.interpret(binding, x, weights), expected)
