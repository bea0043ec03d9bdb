"""Slots of the models of the catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno.network.models.registry import built, describe

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno.network.layers import LayerFilter

ENOUGH = 0.25  # fraction of the MACs: a stem alone says little about the operators in it


def slots(
    net: nn.Module,
    where: LayerFilter | Sequence[LayerFilter] | None = None,
    *,
    example: torch.Tensor | None = None,
) -> nn.Module:
    """A copy of a network made by `build` in which the layers of its rule are slots.

    where: other layers than those. example: an input that slots learn their sizes from, in place of
    one of the size that the network was built for. Every slot knows its sizes and keeps its
    original, so the copy computes what `net` does. Raises UserError for another network:
    `syno.substitute` takes any.
    """
    from syno.network.substitute import substitute

    made = built(net)
    example = made.example() if example is None else example
    if (first := next(net.parameters(), None)) is not None:
        example = example.to(first.device, first.dtype if example.is_floating_point() else None)
    if where is not None:
        return substitute(net, where, example)
    rules = describe(made.name).rules
    return substitute(net, rules[0] if len(rules) == 1 else _telling(net, rules, example), example)


def _telling(net: nn.Module, rules: Sequence[LayerFilter], example: torch.Tensor) -> LayerFilter:
    """Return the first rule whose layers have enough of the MACs, or the one with the most."""
    from syno.network.layers import LayerReport
    from syno.network.surgery import NoSlotsError, layer_report, put_slots

    best, most = rules[0], 0.0
    for rule in rules:
        try:
            report: LayerReport = layer_report(put_slots(net, rule, example))
        except NoSlotsError:
            continue
        share = sum(row.share or 0.0 for row in report.slots)
        if share >= ENOUGH:
            return rule
        if share > most:
            best, most = rule, share
    return best
