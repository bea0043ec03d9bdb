"""Slots of the models of the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno._errors import UserError
from syno.models.registry import built, describe

if TYPE_CHECKING:
    from torch import nn

    from syno.layers import LayerFilter


def slots(net: nn.Module, where: LayerFilter | Sequence[LayerFilter] | None = None) -> nn.Module:
    """A copy of a network made by `build` in which the layers of its rule are slots.

    where: other layers than those. Every slot knows its sizes and keeps its original, so the copy
    computes what `net` does. Raises UserError for another network: `syno.substitute` takes any.
    """
    from syno.substitute import substitute

    made = built(net)
    example = made.example()
    if where is not None:
        return substitute(net, where, example)
    *earlier, last = describe(made.name).rules
    for rule in earlier:
        try:
            return substitute(net, rule, example)
        except UserError as error:
            if "has no slots" not in str(error):
                raise
    return substitute(net, last, example)
