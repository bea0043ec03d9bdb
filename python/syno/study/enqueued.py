"""Operators that a user lets a search evaluate first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.operands.layers import layer_specification
from syno.operands.lookup import NamedOperator, named_operators
from syno.operators.operator import Operator
from syno.operators.specification import Specification

if TYPE_CHECKING:
    from torch import nn

_NAME = re.compile(r"[A-Za-z_]\w*")


def enqueued_operators(
    ops: Sequence[str | Operator], specification: Specification, template: nn.Module
) -> list[Operator]:
    """Return operators under the specification of a search.

    Variables get the names that the specification has at the same places of the shapes, and
    coefficients those that it has for the same values.

    Args:
        ops: operators, or what names them.
        specification: of the search.
        template: the network with its slots, which gives a formula its shapes.

    Raises:
        UserError: for an operator with other dimensions, or with a coefficient that the
            specification does not have.
    """
    if not ops:
        return []
    sizes = {name: size for name, size in specification.defaults.items() if name != "N"}
    layers = layer_specification(template, sizes)
    found = named_operators(ops, layers=layers)
    return [_under(each, specification) for each in found]


def _under(named: NamedOperator, specification: Specification) -> Operator:
    operator = named.operator
    if operator.specification is specification:
        return operator
    renamed: dict[str, str] = {}
    shapes = (
        (operator.input, specification.input),
        (operator.output, specification.output),
    )
    for own, wanted in shapes:
        names = [part.partition(":")[0].strip() for part in wanted.strip()[1:-1].split(",")]
        if len(own) != len(names):
            raise UserError(
                f"operator '{named.name}' maps [{', '.join(operator.input)}] to "
                f"[{', '.join(operator.output)}], and the search is for {specification.input} to "
                f"{specification.output}\n  expected: as many dimensions"
            )
        renamed |= {
            size: name
            for size, name in zip(own, names, strict=True)
            if _NAME.fullmatch(size) and _NAME.fullmatch(name)
        }
    known = specification.defaults
    for name in operator.variables:
        if name in renamed or name in known:
            continue
        value = named.sizes.get(name)
        same = [other for other, size in known.items() if size == value]
        if not same:
            size = "" if value is None else f"={value}"
            raise UserError(
                f"operator '{named.name}' has a coefficient {name}{size}, which the search lacks\n"
                f"  expected: one of {', '.join(f'{n}={v}' for n, v in known.items() if n != 'N')}"
                ", or a specification with it"
            )
        renamed[name] = same[0]
    text = _NAME.sub(lambda match: renamed.get(match.group(), match.group()), operator.text)
    return Operator.from_text(text, specification)
