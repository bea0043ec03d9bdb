"""Times of all slots of a network with an operator, as compiled code.

An eager network of PyTorch spends much of its time between its layers, so that its latency says
little about an operator. This module measures each kind of slot separately and adds the times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.hooks import removed_after
from syno._util.inputs import Inputs, arguments, samples_in
from syno._util.network_copy import copy_network
from syno.measure.kernels import KernelRun, bench_kernels
from syno.measure.timing import CPP
from syno.network import models
from syno.network.models.info import ModelOptions
from syno.network.placeholder import Placeholder, checked_slots
from syno.network.substitute import layer_report
from syno.operators.operator import Operator

ORIGINAL = "original"
_POOL = "pool"


@dataclass(frozen=True)
class SlotsTime:
    """All slots of a network together, with one operator in those that it fits.

    name: of the operator, `original` for the layers of the network in eager PyTorch.
    best_ms, median_ms: of one sample's, or one batch's, way through all slots; a slot that keeps
        its layer counts with that, and one of stride 2 with the pooling before it.
    replaced, kept: how many slots hold the operator, and how many do not fit it.
    macs, params: of all slots, those that keep their layer counted in; macs of the batch, None
        where those of a layer that is kept are not known.
    """

    name: str
    best_ms: float
    median_ms: float
    replaced: int
    kept: int
    macs: int | None
    params: int


@dataclass
class SlotsRun:
    """Sums, and what they are of: `kernels` has the times in each kind of slot, by the name of its
    first slot, and `counts` how many slots are of that kind."""

    kernels: KernelRun
    times: list[SlotsTime] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class SlotKind:
    """Slots that are alike.

    slot: the first of them; slots: the names of all. layer: the original in words; macs, params: of
    the original in one slot.
    """

    slot: Placeholder
    input_shape: tuple[int, ...]
    layer: str
    macs: int | None
    params: int
    slots: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many slots there are."""
        return len(self.slots)


def network_with_slots(
    model: str, options: ModelOptions, size: int | None, batch: int
) -> tuple[nn.Module, torch.Tensor]:
    """The model of that name with slots, and an input for it: zeros, `batch` samples."""
    net = models.build(model, size=size, **options)
    one = models.built(net).example()
    return models.slots(net), torch.zeros(batch, *one.shape[1:], dtype=one.dtype)


def time_slots(
    net: nn.Module,
    operators: Mapping[str, Operator],
    example: torch.Tensor,
    *,
    threads: int = 1,
    rounds: int = 60,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> SlotsRun:
    """Measure the slots of a network with each operator, and with their original layers.

    Args:
        net: a network whose slots hold their original layers, see `syno.models.slots`.
        operators: operators by name.
        example: an input with the batch as first dimension.
        threads: number of threads.
        rounds: number of measurements of each kernel.
        progress: called with (completed steps, all steps, description).

    Raises:
        UserError: a slot has no original layer, an operator fits no slot, or as in
            `bench_kernels`.
    """
    kinds = slot_kinds(copy_network(net).eval(), example)
    bindings = {
        label: {
            name: binding
            for name, operator in operators.items()
            if (binding := fitting_binding(kind.slot, operator, len(example))) is not None
        }
        for label, kind in kinds.items()
    }
    for name in operators:
        if not any(name in of_kind for of_kind in bindings.values()):
            raise UserError(
                f"operator '{name}' fits no slot of the network\n"
                f"  slots: {', '.join(str(kind.slot.binding) for kind in kinds.values())}"
            )
    done, total = -1, sum(len(of_kind) + 1 for of_kind in bindings.values())

    def told(what: str) -> None:
        nonlocal done
        done += 1
        progress(done, total, what)

    run = bench_kernels(
        operators,
        bindings=bindings,
        threads=threads,
        rounds=rounds,
        modules={label: _modules(kind) for label, kind in kinds.items()},
        progress=told,
    )
    counts = {label: kind.count for label, kind in kinds.items()}
    times = [_sum(run, ORIGINAL, kinds, {}, None)]
    for name, operator in operators.items():
        own = {label: of_kind[name] for label, of_kind in bindings.items() if name in of_kind}
        times.append(_sum(run, name, kinds, own, operator))
    return SlotsRun(run, times, counts)


def slot_kinds(net: nn.Module, example: Inputs) -> dict[str, SlotKind]:
    """Slots that are alike, under the name of the first, in order of appearance."""
    slots = checked_slots(net)
    shapes: dict[str, tuple[int, ...]] = {}

    def hook(name: str) -> Callable[[nn.Module, tuple[torch.Tensor, ...]], None]:
        def note(_: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
            shapes.setdefault(name, tuple(inputs[0].shape))

        return note

    handles = [slot.register_forward_pre_hook(hook(name)) for name, slot in slots.items()]
    with removed_after(handles), torch.no_grad():
        net(*arguments(example))
    rows = {row.name: row for row in layer_report(net).rows}
    found: dict[tuple[object, ...], SlotKind] = {}
    for name, slot in slots.items():
        if slot.original is None:
            raise UserError(f"slot '{name}' of the network has no original layer to time")
        if name not in shapes:  # the network does not use it
            continue
        key = (repr(slot.original), slot.shapes, tuple(slot.binding.items()), shapes[name])
        if key not in found:
            row = rows[name]
            macs = None if row.macs is None else row.macs * samples_in(example)
            found[key] = SlotKind(slot, shapes[name], row.layer, macs, row.params)
        found[key].slots.append(name)
    return {kind.slots[0]: kind for kind in found.values()}


def fitting_binding(slot: Placeholder, operator: Operator, batch: int) -> dict[str, int] | None:
    """The operator's binding in a slot; None where it does not fit."""
    own = {} if operator.batch is None else {operator.batch: batch * slot.phases}
    try:
        pack = operator.kernel_pack(slot.binding_of(operator) | own)
        slot.check_kernel(pack)
    except UserError:
        return None
    return dict(pack.binding)


def _modules(kind: SlotKind) -> dict[str, tuple[nn.Module, Sequence[int]]]:
    assert kind.slot.original is not None
    found: dict[str, tuple[nn.Module, Sequence[int]]] = {
        ORIGINAL: (kind.slot.original, kind.input_shape)
    }
    moves = kind.slot.moves
    if moves is not None:
        found[_POOL] = (moves, kind.input_shape)
    return found


def _sum(
    run: KernelRun,
    name: str,
    kinds: Mapping[str, SlotKind],
    bindings: Mapping[str, dict[str, int]],
    operator: Operator | None,
) -> SlotsTime:
    """The sum over all slots: the operator where it has a binding, the original elsewhere."""
    times = {(time.layer, time.kernel): time for time in run.times}
    best = median = 0.0
    replaced = params = 0
    macs: int | None = 0
    for label, kind in kinds.items():
        parts = [times[label, ORIGINAL]]
        own: tuple[int | None, int] = (kind.macs, kind.params)
        if operator is not None and label in bindings:
            parts = [times[label, f"{name} {CPP}"]]
            parts += [times[label, _POOL]] if kind.slot.moves is not None else []
            own = (operator.macs(bindings[label]), operator.params(bindings[label]))
            replaced += kind.count
        macs = None if macs is None or own[0] is None else macs + kind.count * own[0]
        params += kind.count * own[1]
        best += kind.count * sum(part.best_ms for part in parts)
        median += kind.count * sum(part.median_ms for part in parts)
    kept = sum(kind.count for kind in kinds.values()) - replaced
    return SlotsTime(name, best, median, replaced, kept, macs, params)
