"""The sizes under which an operator is used: given, of its specification, or an example."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno._util.errors import UserError

if TYPE_CHECKING:
    from syno.operators.operator import Operator

# Sizes tried for an example: small variables begin with a small letter.
_LARGE = (64, 28, 32, 56, 96, 48, 8)
_SMALL = (3, 2, 4, 7, 8, 32)
_MOST_TRIALS = 5000


def checked_sizes(operator: Operator, given: str | None, line: str) -> dict[str, int]:
    """The value of every variable of the operator, from `--binding` and its specification.

    line: the command as far as its operand, such as "syno show op.txt". UserError lists the
    variables without a value, with a line that works.
    """
    from syno.operators.specification import checked_binding

    values = {} if given is None else checked_binding(given)
    missing = _missing(operator, values)
    if not missing:
        complete = operator.complete(values)
        return {name: complete[name] for name in operator.variables}
    example = _example(operator, values, missing)
    shown = "" if example is None else f"\n  such as: {line} --binding {example}"
    raise UserError(
        f"operator {operator.structure[:8]} needs values of {', '.join(missing)}\n"
        f"  expected: --binding with these variables      got: {given or 'none of them'}{shown}"
    )


def own_sizes(operator: Operator, line: str) -> list[dict[str, int]]:
    """The layers of the operator's specification; UserError as in `checked_sizes` without any."""
    found = operator.specification.bindings if operator.specification is not None else []
    return list(found) or [checked_sizes(operator, None, line)]


def example_sizes(operator: Operator) -> str | None:
    """What `--binding` could be for the operator; None when no small sizes are found."""
    return _example(operator, {}, _missing(operator, {}))


def _missing(operator: Operator, values: dict[str, int]) -> list[str]:
    specification = operator.specification
    known = set(values) | ({operator.batch} if operator.batch else set())
    if specification is not None:
        known |= set(specification.defaults)
    return [name for name in operator.variables if name not in known]


def _example(operator: Operator, values: dict[str, int], missing: Sequence[str]) -> str | None:
    tried = [_SMALL if name[0].islower() else _LARGE for name in missing]
    for sizes in itertools.islice(itertools.product(*tried), _MOST_TRIALS):
        found = values | dict(zip(missing, sizes, strict=True))
        try:
            operator.source(found)
        except UserError:
            continue
        return ",".join(f"{name}={size}" for name, size in found.items())
    return None
