"""The small sizes at which an operator is examined as a linear map.

A specification's layers are too large for that, and their sizes are only a scale: a feature should
say how an operator mixes, not how large a layer is. All operators of a specification are examined
at the same sizes where these are legal for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from syno.operators.operator import Operator
from syno.operators.specification import Specification

_NAME = re.compile(r"[A-Za-z_]\w*")
# Pairs of the greatest size of a channel variable and of a coefficient, tried one after the other
# until all sizes of an operator are whole numbers. The last ones are for products of coefficients,
# such as 384 channels in blocks of 8 * 8 * 3, which are whole only at small coefficients.
_CAPS = ((16, 4), (32, 4), (32, 8), (64, 8), (64, 32), (64, 4), (16, 2), (32, 2), (64, 2))
# The greatest extent of a position variable, by the number of position axes.
_POSITION_CAPS = {0: 1, 1: 32, 2: 8}
_MANY_AXES = 4


@dataclass(frozen=True)
class Positions:
    """The position dimensions of output and input, such as height and width, by number.

    The other dimensions are channels. A dimension is a position if it is ordered and shares a large
    variable with an ordered dimension of the other side.
    """

    output: tuple[int, ...]
    input: tuple[int, ...]
    variables: frozenset[str]

    @classmethod
    def of(cls, operator: Operator, specification: Specification) -> Positions:
        """The positions of an operator's shapes."""
        primary = {text.split(":")[0].strip() for text in specification.primary}
        sides = []
        for shape in (operator._core.output, operator._core.input):
            names = [set(_NAME.findall(size)) & primary for size, _, _ in shape]
            ordered = [not unordered for _, unordered, _ in shape]
            sides.append(list(zip(names, ordered, strict=True)))
        batch = {operator.batch}
        union = [set().union(*(names for names, ordered in side if ordered)) for side in sides]
        shared = union[0] & union[1] - batch
        output, input_ = (
            tuple(d for d, (names, ordered) in enumerate(side) if ordered and names & shared)
            for side in sides
        )
        return cls(output, input_, frozenset(shared))


def probe_bindings(specification: Specification, positions: Positions) -> Iterator[dict[str, int]]:
    """Bindings to try one after the other: small ones first, then the layers as they are."""
    coefficients = {text.split("=")[0].split(":")[0].strip() for text in specification.coefficient}
    passed = {name for name, value in specification.defaults.items() if value == 1}
    layers = specification.full_bindings
    position_cap = _POSITION_CAPS.get(len(positions.input), _MANY_AXES)
    for channel_cap, coefficient_cap in _CAPS:
        for layer in layers[:1]:
            small = {}
            for name, value in layer.items():
                if name in positions.variables:
                    cap = position_cap
                elif name in coefficients:
                    cap = coefficient_cap
                else:
                    cap = 1 if name in passed else channel_cap
                small[name] = _halved(value, cap)
            yield small
    yield from layers


def _halved(value: int, cap: int) -> int:
    while value > cap and value % 2 == 0:
        value //= 2
    return value
