"""What a task tunes: for each kind of layer an operator with its sizes, or the original layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn

from syno._util.errors import UserError
from syno.inference.passes.layers import layers_of
from syno.inference.prepare import prepare
from syno.measure import kernels
from syno.measure.slots import fitting_binding, network_with_slots, slot_kinds
from syno.operands.layers import fit_to_network
from syno.operands.lookup import NamedOperator
from syno.operators.operator import Operator
from syno.tune.tasks import TuningTask


@dataclass(frozen=True)
class TuningSubject:
    """One kind of layer.

    layer, count: as in `TunedLayer`; operator, binding: what computes there; None for an original
    layer, which is `original`, a module for inputs of `shape`. kept: whether that stands there
    because the operator does not fit. moves: what a slot computes beside the operator: a pooling,
    or the way of the map to the phases of a dilation and back.
    """

    layer: str
    count: int
    original: nn.Module
    shape: tuple[int, ...]
    operator: Operator | None = None
    binding: Mapping[str, int] | None = None
    moves: nn.Module | None = None
    kept: bool = False

    def computation(self) -> tuple[Operator, dict[str, int]]:
        """The operator and its sizes; an original layer as an operator.

        UserError for a layer that is none.
        """
        if self.operator is not None and self.binding is not None:
            return self.operator, dict(self.binding)
        with torch.inference_mode(False):
            example = torch.zeros(self.shape)
            prepared = prepare(nn.Sequential(self.original).eval(), (example,), batch=True)
        found = list(layers_of(prepared.graph).values())
        if len(found) != 1 or prepared.kept:
            why = ", ".join(each.reason for each in prepared.kept) or "it is no single layer"
            raise UserError(f"the layer '{self.layer}' has no form as an operator: {why}")
        computation = found[0].computation
        operator, sizes = computation.operator, dict(computation.binding)
        if operator.batch is not None:
            sizes[operator.batch] = self.shape[0]
        return operator, sizes


def subjects_of(task: TuningTask) -> list[TuningSubject]:
    """The kinds of layers of a task, in the order of the model.

    UserError for an operator that fits no layer, or needs sizes that nothing gives.
    """
    operator = Operator.from_text(task.text) if task.text else None
    if task.layer is not None:
        return [_single(task, operator, *task.layer)]
    assert task.model is not None
    template, example = network_with_slots(task.model, {}, task.size, task.batch)
    if operator is not None:
        named = NamedOperator(task.operator, operator, task.sizes)
        operator = fit_to_network(named, template, task.binding)
    found = []
    for name, kind in slot_kinds(template.eval(), example).items():
        assert kind.slot.original is not None
        binding = None if operator is None else fitting_binding(kind.slot, operator, task.batch)
        found.append(
            TuningSubject(
                name,
                kind.count,
                kind.slot.original,
                kind.input_shape,
                operator=None if binding is None else operator,
                binding=binding,
                moves=None if binding is None else kind.slot.moves,
                kept=operator is not None and binding is None,
            )
        )
    if operator is not None and all(each.kept for each in found):
        raise UserError(f"operator '{task.operator}' fits no slot of {task.model}")
    return found


def _single(task: TuningTask, operator: Operator | None, channels: int, size: int) -> TuningSubject:
    layer = nn.Conv2d(channels, channels, 3, padding=1, bias=False).eval()
    shape = (task.batch, channels, size, size)
    binding = None
    if operator is not None:
        binding = kernels.sizes(
            operator, channels, size, task.batch, given=task.binding, otherwise=task.sizes
        )
        operator.shapes(binding)
    return TuningSubject(task.place, 1, layer, shape, operator, binding)
