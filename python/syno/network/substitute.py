"""Slots for a network's layers: find them, fill them, and say what became of each.

`import syno` loads this module and needs no torch; the functions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno.network.layers import LayerFilter, LayerReport, LayerRow, conv2d, linear
from syno.operators.operator import Operator

if TYPE_CHECKING:
    import torch
    from torch import nn


def substitute(
    net: nn.Module,
    where: LayerFilter | Sequence[LayerFilter] | None = None,
    example_input: torch.Tensor | tuple[torch.Tensor, ...] | None = None,
) -> nn.Module:
    """A copy of `net` in which the layers that `where` describes are slots with their originals.

    where: a filter, or several; a layer becomes a slot when one describes it. Default
        conv2d(kernel=3, groups=1).
    example_input: a tensor, or a tuple of the network's arguments, on which it is traced once to
        learn the sizes of its maps and its multiply-adds; the values do not matter. Without one
        each slot learns its sizes when the network first runs.

    The copy computes what `net` does until an operator fills a slot; `layer_report` says which
    layers became slots and why others did not. Raises UserError when none does.
    """
    from syno.network.surgery import put_slots

    return put_slots(net, conv2d(kernel=3, groups=1) if where is None else where, example_input)


def replace(net: nn.Module, operator: Operator, *, scaled: bool = True) -> LayerReport:
    """Fills every slot of `net` with the operator, each with weights of its own.

    scaled: whether the first weights are scaled so that results vary as those of the layer replaced
    do, and their rates of learning like its own; otherwise each is drawn with variance 1 over the
    terms summed.

    A slot that the operator cannot fill, because a size is illegal there, keeps its original, and
    the report says why. Raises UserError when the network has no slots or the operator fits none.
    """
    from syno.network.surgery import replace_slots

    return replace_slots(net, operator, scaled=scaled)


def layer_report(net: nn.Module) -> LayerReport:
    """Every layer that operators may replace: found, replaced, or kept and why."""
    from syno.network import surgery

    return surgery.layer_report(net)


__all__ = [
    "LayerFilter",
    "LayerReport",
    "LayerRow",
    "conv2d",
    "layer_report",
    "linear",
    "replace",
    "substitute",
]
