"""Slots of the small networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from syno._errors import UserError

if TYPE_CHECKING:
    from syno.models.blocks import SmallNetwork


def slots(net: SmallNetwork) -> SmallNetwork:
    """A copy of a network made by `build` whose 3x3 convolutions, the stem apart, are slots.

    Every slot knows its sizes and keeps its original, so the copy computes what `net` does.
    Raises UserError for another network: `syno.substitute` takes any.
    """
    import torch

    from syno.models.blocks import SmallNetwork
    from syno.substitute import conv2d, substitute

    if not isinstance(net, SmallNetwork):
        raise UserError(
            f"slots() is for networks made by syno.models.build, got {type(net).__name__}\n"
            "  use syno.substitute(net, where=syno.conv2d(kernel=3, groups=1), example_input=...)"
        )
    where = conv2d(kernel=3, groups=1, name="body.*")
    return cast(SmallNetwork, substitute(net, where, torch.zeros(1, *net.input_shape)))
