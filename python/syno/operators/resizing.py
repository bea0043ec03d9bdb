"""Bindings of one operator for inputs of other sizes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from syno._util.errors import UserError
from syno.operators.specification import Binding
from syno.operators.value import OperatorValue

_VARIABLE = re.compile(r"[A-Za-z_]\w*")


def resized(operator: OperatorValue, binding: Binding, size: Sequence[int]) -> dict[str, int]:
    """The binding under which the operator takes inputs of that size with the same weights.

    size: of x, without the batch. UserError where there is none.
    """
    values = dict(binding)
    expected = [*([1] if operator.batch else []), *size]
    if operator.batch is not None:
        values[operator.batch] = 1
    weights = operator.weight_shapes(values)
    for dim, name in enumerate(operator.input[: len(expected)]):
        for variable in _VARIABLE.findall(name):
            extent = operator.shapes(values).input[dim]
            changed, rest = divmod(values[variable] * expected[dim], extent)
            if rest == 0 and _takes(operator, attempt := {**values, variable: changed}, weights):
                values = attempt
    if list(operator.shapes(values).input) != expected:
        found = list(operator.shapes({**binding}).input)
        raise UserError(
            "x of a size that the operator cannot take with these weights\n"
            f"  expected: {found}, or other sizes of the variables that no weight depends on"
            f"      got: {expected}"
        )
    return values


def _takes(operator: OperatorValue, values: dict[str, int], weights: list[tuple[int, ...]]) -> bool:
    try:
        return operator.weight_shapes(values) == weights
    except UserError:  # a size that is not a whole number
        return False
