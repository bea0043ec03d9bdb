"""Slots that are alike: of one size, so that a candidate costs the same in each of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from syno._util.errors import UserError
from syno.adaptation.pipeline.pool import Candidate
from syno.network.placeholder import Placeholder, checked_slots
from syno.network.substitute import layer_report
from syno.operators.operator import Operator
from syno.study.evaluate.network import future_read


@dataclass
class Kind:
    """Slots that are alike.

    name: of the first slot; slots: the names of all.
    slot: the first one, with its original layer.
    inside: the shape of an input of the slot with a batch of 1.
    layer: the original in words; macs, params: of the original in one slot.
    causal: whether an operator must not read later positions.
    """

    name: str
    slot: Placeholder
    inside: tuple[int, ...]
    layer: str
    macs: int
    params: int
    causal: bool = False
    slots: list[str] = field(default_factory=list)
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

    @property
    def removable(self) -> bool:
        """Whether the slot returns what it receives if its layer is removed."""
        shapes = self.slot.shapes
        return shapes is not None and shapes[0] == shapes[1]


def kinds_of(
    template: nn.Module, example: torch.Tensor, *, causal: bool = False
) -> dict[str, Kind]:
    """The kinds of slots of a network, by the name of their first slot."""
    slots = checked_slots(template)
    rows = {row.name: row for row in layer_report(template).rows}
    shapes = _input_shapes(template, slots, example)
    found: dict[tuple[object, ...], Kind] = {}
    for name, slot in slots.items():
        if name not in shapes:  # the network does not use it
            continue
        row = rows[name]
        key = (row.layer, repr(slot.original), slot.shapes, shapes[name])
        if key not in found:
            params = row.params or 0
            found[key] = Kind(name, slot, shapes[name], row.layer, row.macs or 0, params, causal)
        found[key].slots.append(name)
    return {kind.name: kind for kind in found.values()}


def _input_shapes(
    template: nn.Module, slots: dict[str, Placeholder], example: torch.Tensor
) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}

    def note(name: str) -> object:
        def hook(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            shapes.setdefault(name, tuple(inputs[0].shape))

        return hook

    hooks = [slot.register_forward_pre_hook(note(name)) for name, slot in slots.items()]  # type: ignore[arg-type]
    try:
        with torch.no_grad():
            template(example[:1])
    finally:
        for hook in hooks:
            hook.remove()
    return shapes


def _binding(slot: Placeholder, operator: Operator, sizes: dict[str, int]) -> dict[str, int]:
    batch = {} if operator.batch is None else {operator.batch: slot.phases}
    known = {**slot.binding, **sizes, **batch}
    pack = operator.kernel_pack({k: v for k, v in known.items() if k in operator.variables})
    slot.check_kernel(pack)
    return dict(pack.binding)
