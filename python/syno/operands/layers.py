"""How an operator comes to fit the layers of a network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from syno._util.errors import UserError

if TYPE_CHECKING:
    from torch import nn

    from syno.network.placeholder import Placeholder
    from syno.operands.lookup import NamedOperator
    from syno.operators.operator import Operator
    from syno.operators.specification import Specification

ORIGINAL = "none"  # in place of an operator: the network as it is
_BUDGET = 8  # of a variable; nothing is synthesised under it
_CHANNELS = {"C_in", "C_out", "H_in", "H_out"}
_NAME = re.compile(r"[A-Za-z_]\w*")


def layer_specification(template: nn.Module, sizes: Mapping[str, int]) -> Specification:
    """The shapes of the network's layers, for formulas; `sizes` are its coefficients."""
    from syno.network.placeholder import slots
    from syno.operators.specification import Specification

    slot = next(iter(slots(template).values()))
    inside, outside = slot.sizes
    known = dict.fromkeys(["N", *(name for name in inside + outside if _NAME.fullmatch(name))])
    sizes = slot.factor | dict(sizes)

    def shape(names: Sequence[str]) -> str:
        return f"[{', '.join(f'{n}: unordered' if n in _CHANNELS else n for n in ['N', *names])}]"

    return Specification(
        shape(inside),
        shape(outside),
        [f"{name}: {_BUDGET}" for name in known],
        [f"{name}={value}: {_BUDGET}" for name, value in sizes.items()],
        passed_through=[(0, 0)],
    )


def fit_to_network(named: NamedOperator, template: nn.Module, sizes: Mapping[str, int]) -> Operator:
    """The operator under a specification with the layers of the network.

    One that was found under a specification keeps its variables. For another, or one whose
    variables its specification does not know, variables get the names that the network's slots
    have, by where they stand in the shapes, and what is left is a coefficient, with its value from
    `sizes`, or from what the operator came with.

    UserError for a coefficient without a value, and where no slot fits.
    """
    from syno.network.surgery import slot_bindings
    from syno.operators.specification import NO_TOTALS

    operator = named.operator
    specification = operator.specification
    if specification is None or not set(operator.variables) <= set(specification.variables):
        operator, specification = _specified(named, template, sizes)
    bound = specification.with_changes(
        bindings=[], multiplicities=None, layer_macs=None, **NO_TOTALS
    ).with_changes(**slot_bindings(template, specification))
    return operator.with_specification(bound)


def _specified(
    named: NamedOperator, template: nn.Module, sizes: Mapping[str, int]
) -> tuple[Operator, Specification]:
    from syno.network.placeholder import slots
    from syno.operators.specification import Specification

    slot = next(iter(slots(template).values()))
    operator = in_words_of(slot, named.operator)
    text = operator.text
    primary = [
        name
        for name in operator.variables
        if (name in slot.binding and name not in slot.factor) or name == operator.batch
    ]
    values = {**slot.factor, **named.sizes, **sizes}
    coefficients = [name for name in operator.variables if name not in primary]
    missing = [name for name in coefficients if name not in values]
    if missing:
        given = ",".join(f"{name}={value}" for name, value in sizes.items()) or "none"
        raise UserError(
            f"operator '{named.name}' needs values of {', '.join(missing)}\n"
            f"  expected: --binding with these variables, such as "
            f"{','.join(f'{name}=2' for name in missing)}      got: {given}"
        )
    shapes = dict(
        line.split(" ", 1) for line in text.splitlines() if line.startswith(("in", "out"))
    )
    specification = Specification(
        shapes["in"],
        shapes["out"],
        [f"{name}: {_BUDGET}" for name in primary],
        [f"{name}={values[name]}: {_BUDGET}" for name in coefficients],
        passed_through=[(0, 0)],
    )
    return operator, specification


def in_words_of(slot: Placeholder, operator: Operator) -> Operator:
    """The operator with the slot's names of its variables, by where they stand in the shapes.

    UserError for an operator with another number of dimensions.
    """
    from syno.operators.operator import Operator

    renamed = _names_of(operator, slot)
    text = _NAME.sub(lambda match: renamed.get(match.group(), match.group()), operator.text)
    return Operator.from_text(text)


def _names_of(operator: Operator, slot: Placeholder) -> dict[str, str]:
    """The slot's name of each variable that stands alone in the operator's shapes."""
    inside, outside = slot.sizes
    renamed: dict[str, str] = {}
    for shape, known in ((operator.input, inside), (operator.output, outside)):
        if len(shape) - 1 != len(known):
            raise UserError(
                f"the operator maps [{', '.join(operator.input)}] to "
                f"[{', '.join(operator.output)}], and the layers of the network have inputs "
                f"[N, {', '.join(inside)}]\n  expected: as many dimensions"
            )
        for size, name in zip(shape[1:], known, strict=True):
            if _NAME.fullmatch(size) and _NAME.fullmatch(name):
                renamed.setdefault(size, name)
    taken = set(renamed.values())
    # A variable of another meaning that has a slot's name gives way.
    for name in operator.variables:
        if name not in renamed and name in taken:
            renamed[name] = f"{name}_"
    return renamed
