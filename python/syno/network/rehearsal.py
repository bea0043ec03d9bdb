"""A run of a network with slots, as if operators were in them: which layers must stay.

A network may use more of a layer than its result. It may compute with the weight, ask for the type
of the layer, or keep the layer where no slot gets in its place. A slot there would be wrong without
a word, so that each network with slots runs once on shapes before it is given away. Requires
PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from syno._util.network_copy import Copies
from syno.network.exchange import become, move_hooks, twin_of
from syno.network.placeholder import Placeholder
from syno.network.trace import Trace, run_copy

_OTHERWISE = "with a slot in its place, the network computes something else"
_UNREACHED = "the network reaches it in a way in which it does not reach a slot"


@dataclass(frozen=True)
class SlotPlan:
    """A layer that is to become a slot. name: of the layer. make: the slot of a layer."""

    name: str
    layer: nn.Module
    make: Callable[[nn.Module], Placeholder]

    def put(self, layer: nn.Module) -> Placeholder:
        """Turn a layer, or a copy of it, into the slot."""
        original = twin_of(layer)
        slot = self.make(original)
        slot.training = original.training
        move_hooks(original, slot)
        become(layer, slot)
        assert isinstance(layer, Placeholder)
        return layer


def kept_by_rehearsal(
    net: nn.Module,
    plans: Mapping[int, SlotPlan],
    inputs: tuple[torch.Tensor, ...],
    plain: Trace,
) -> dict[str, str]:
    """Why layers of a network must stay, by their names.

    net: the network before it has the slots; it stays as it is. plans: by the ids of layers.
    plain: the trace of the network.
    """
    kept: dict[str, str] = {}
    left = dict(plans)
    while left:
        found = _reasons(net, left, inputs, plain)
        if found is None:  # with each slot alone, until it is clear which
            found = {}
            for number, plan in left.items():
                alone = _reasons(net, {number: plan}, inputs, plain)
                found |= {number: _OTHERWISE} if alone is None else alone
            if not found:
                found = dict.fromkeys(left, _OTHERWISE)
        if not found:
            break
        kept |= {left[number].name: reason for number, reason in found.items()}
        left = {number: plan for number, plan in left.items() if number not in found}
    return kept


def _reasons(
    net: nn.Module,
    plans: Mapping[int, SlotPlan],
    inputs: tuple[torch.Tensor, ...],
    plain: Trace,
) -> dict[int, str] | None:
    """Why some layers must stay, by their ids; None where it is not clear which."""
    made: dict[int, Placeholder] = {}

    def put(copies: Copies) -> dict[int, nn.Module]:
        for number, plan in plans.items():
            made[number] = plan.put(copies[number])
            made[number].guarded = True
        return dict(made)

    try:
        found = run_copy(net, put, inputs, on_values=plain.on_values)
    except Exception:  # of the code of a network, which a slot may lead to
        found = None
    if refused := {number: slot.refused for number, slot in made.items() if slot.refused}:
        return refused
    if found is None:
        return None
    if unreached := dict.fromkeys(plans.keys() - found.calls.keys(), _UNREACHED):
        return unreached
    return {} if found.operations == plain.operations else None
