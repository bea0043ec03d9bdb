"""Slots that are alike: of one size, so that a candidate costs the same in each of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, first
from syno.adaptation.pipeline.pool import ORIGINAL_LAYER, Candidate
from syno.measure.slots import slot_kinds
from syno.network.placeholder import Placeholder, slots
from syno.operators.operator import Operator
from syno.study.evaluate.network import future_read


@dataclass
class Kind:
    """Slots that are alike.

    name: of the first slot; slots: the names of all.
    slot: the first one, with its original layer.
    input_shape: the shape of an input of the slot with a batch of 1.
    layer: the original in words; macs, params: of the original in one slot.
    causal: whether an operator must not read later positions.
    """

    name: str
    slots: Sequence[str]
    slot: Placeholder
    input_shape: tuple[int, ...]
    layer: str
    macs: int
    params: int
    causal: bool = False
    # Names of candidates that were found to read no later positions.
    _causal: set[str] = field(default_factory=set, repr=False)

    def binding(self, candidate: Candidate) -> dict[str, int]:
        """The values of all variables of a candidate in this kind of slot.

        Raises UserError where the candidate does not fit, or reads later positions.
        """
        binding = _binding(self.slot, candidate.operator, candidate.sizes)
        if self.causal and candidate.name not in self._causal:
            future = future_read(self.slot, candidate.operator, binding)
            if future is not None:
                raise UserError(future)
            self._causal.add(candidate.name)
        return binding

    def fill(self, slot: Placeholder, candidate: Candidate) -> None:
        """Put a candidate with initial weights into a slot of this kind."""
        if candidate is ORIGINAL_LAYER:
            return
        if not candidate.is_operator:
            slot.replace(nn.Identity().train(slot.training))
            return
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            layer = candidate.operator.kernel_pack(
                self.binding(candidate), reference=slot.reference
            )
        slot.replace(layer.train(slot.training))

    @property
    def removable(self) -> bool:
        """Whether the slot returns what it receives if its layer is removed."""
        shapes = self.slot.shapes
        return shapes is not None and shapes[0] == shapes[1]


def kinds_of(
    template: nn.Module,
    example: Inputs,
    *,
    causal: bool = False,
    without: Collection[str] = (),
) -> dict[str, Kind]:
    """The kinds of slots of a network, by the name of their first slot.

    without: names of slots that keep their layers.
    """
    found = slots(template)
    made = {}
    for kind in slot_kinds(template, first(example, 1)).values():
        own = [name for name in kind.slots if name not in without]
        if own:
            made[own[0]] = Kind(
                own[0],
                own,
                found[own[0]],
                kind.input_shape,
                kind.layer,
                kind.macs or 0,
                kind.params,
                causal,
            )
    return made


def by_slot(kinds: Mapping[str, Kind]) -> dict[str, Kind]:
    """The kind of each slot."""
    return {slot: kind for kind in kinds.values() for slot in kind.slots}


def _binding(slot: Placeholder, operator: Operator, sizes: dict[str, int]) -> dict[str, int]:
    batch = {} if operator.batch is None else {operator.batch: slot.phases}
    known = {**slot.binding, **sizes, **batch}
    pack = operator.kernel_pack({k: v for k, v in known.items() if k in operator.variables})
    slot.check_kernel(pack)
    return dict(pack.binding)
