"""Slots in a network: create them, fill them with operators, and report on them.

`import syno` loads this module and needs no torch; the functions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno._util.arguments import checked, flag, instance
from syno.network.layers import (
    LayerFilter,
    LayerReport,
    LayerRow,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    linear,
)
from syno.operators.operator import Operator

if TYPE_CHECKING:
    import torch
    from torch import nn


def substitute(
    net: nn.Module,
    where: LayerFilter | Sequence[LayerFilter] | None = None,
    example_input: torch.Tensor | tuple[torch.Tensor, ...] | None = None,
) -> nn.Module:
    """Return a copy of a network in which layers are replaced with slots.

    The copy computes the same as `net` until an operator fills a slot. `layer_report` prints which
    layers became slots, and why others did not.

    Args:
        net: the network.
        where: one or several filters that select layers. Default: the 3x3 convolutions without
            groups; in a network without any, its other convolutions, those over signals or over
            volumes, or at last its linear layers.
        example_input: a tensor, or a tuple of the arguments of the network, with which it is traced
            once to determine the sizes of its feature maps and its MACs; the values do not matter.
            Without it, each slot determines its sizes when the network first runs.

    Raises:
        UserError: no layer can become a slot.
    """
    from syno.network.surgery import put_slots

    return put_slots(net, where, example_input)


@checked(operator=instance(Operator), scaled=flag)
def replace(net: nn.Module, operator: Operator, *, scaled: bool = True) -> LayerReport:
    """Fill every slot of a network with an operator; each slot has its own weights.

    A slot that the operator does not fit keeps its original layer, and the report gives the reason.

    Args:
        net: a network with slots.
        operator: the operator.
        scaled: scale the initial weights and their learning-rate multipliers so that the outputs
            vary like those of the replaced layer. Otherwise the variance of each initial weight is
            1 divided by the number of summed terms.

    Raises:
        UserError: the network has no slots, or the operator fits none of them.
    """
    from syno.network.surgery import replace_slots

    return replace_slots(net, operator, scaled=scaled)


def layer_report(net: nn.Module) -> LayerReport:
    """Report on every replaceable layer: whether it is a slot, replaced, or kept and why."""
    from syno.network import surgery

    return surgery.layer_report(net)


__all__ = [
    "LayerFilter",
    "LayerReport",
    "LayerRow",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "layer_report",
    "linear",
    "replace",
    "substitute",
]
