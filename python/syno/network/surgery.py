"""Creation of slots in a network, and filling of slots. Requires PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, one_or_several
from syno._util.network_copy import copy_network
from syno._util.tensors import check_sizes
from syno.network.kept import check_initialized, kept_because, parts_of_attention
from syno.network.layer_kinds import (
    MAPS,
    description,
    is_convolution,
    is_linear,
    kind_of,
    macs_of,
    own_dilation,
    sizes_of,
    sizes_of_map,
    weight_params,
)
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
    reasons,
)
from syno.network.placeholder import (
    Placeholder,
    checked_slots,
    slots,
)
from syno.network.rehearsal import SlotPlan, kept_by_rehearsal
from syno.network.trace import Shapes, Trace, checked_example, trace
from syno.operators.layer import Layer
from syno.operators.operator import Operator
from syno.operators.specification import Specification

_ROWS = "_syno_layers"
_TOTALS = "_syno_totals"
_EXAMPLE = "_syno_inputs"
_NO_SLOT = "it is not a slot; syno.substitute creates slots"
Calls = list[Shapes]
# Which layers become slots of a network by default: those of the first filter that finds any.
_USUAL = (
    conv2d(kernel=3, groups=1),
    conv2d(),
    conv1d(),
    conv3d(),
    conv_transpose2d(),
    conv_transpose1d(),
    conv_transpose3d(),
    linear(),
)
# The least dimensions of the input of a layer.
_DIMENSIONS = {"linear": 2} | {kind: len(names) + 2 for kind, names in MAPS.values()}


class SlotBindings(TypedDict):
    """The layers of a specification that a network's slots give."""

    bindings: list[dict[str, int]]
    multiplicities: list[int]
    layer_macs: list[float] | None


class NoSlotsError(UserError):
    """No filter selects a layer."""


def put_slots(
    net: nn.Module,
    where: LayerFilter | Sequence[LayerFilter] | None,
    example_input: object,
) -> nn.Module:
    """`syno.substitute`."""
    if not isinstance(net, nn.Module):
        raise UserError(f"expected a torch.nn.Module, got {type(net).__name__}")
    if where is None:
        return _usual_slots(net, example_input)
    filters = [where] if isinstance(where, LayerFilter) else where
    if not isinstance(filters, (list, tuple)) or not filters:
        raise UserError(f"'where' is a filter such as syno.conv2d(kernel=3), got {where!r}")
    for one in filters:
        if not isinstance(one, LayerFilter):
            raise UserError(f"'where' is a filter such as syno.conv2d(kernel=3), got {one!r}")
    check_initialized(net)
    net = copy_network(net)
    before = layer_report(net)
    earlier = {row.name: row for row in before.rows if row.name in slots(net)}
    layers = list(_layers(net))
    bare = [_original(module) for _, module in layers]
    seen = None
    if example_input is not None:
        seen = trace(net, [layer for layer in bare if layer is not None], example_input)
    total = before.macs if seen is None or earlier else seen.macs
    attention = parts_of_attention(net)
    rows: list[LayerRow] = []
    plans: dict[int, SlotPlan] = {}
    for name, layer in layers:
        if isinstance(layer, Placeholder):
            rows.append(earlier[name])
            continue
        calls = None if seen is None else seen.calls.get(id(layer), [])
        row = LayerRow(name, description(layer), None, None, params=weight_params(layer))
        if seen is not None:
            row = _counted(row, layer, seen, total)
        row = replace(row, reason=kept_because(layer, attention, seen))
        row, chosen = _decide(row, layer, filters, calls)
        rows.append(row)
        if chosen is not None:
            plans[id(layer)] = SlotPlan(name, layer, _slot_maker(row.binding, chosen, calls))
    if seen is not None:
        kept = kept_by_rehearsal(net, plans, checked_example(example_input), seen)
        rows = [_unless_kept(row, kept) for row in rows]
        plans = {number: plan for number, plan in plans.items() if plan.name not in kept}
    if not plans:
        raise NoSlotsError(
            f"the network {type(net).__name__} has no slots\n"
            "  expected: at least one layer that `where` selects      "
            f"got: none of {len(rows)} layers\n"
            + (reasons(rows) or "  it has no convolution and no linear layer")
        )
    params = before.params if earlier else sum(p.numel() for p in net.parameters())
    for plan in plans.values():
        plan.put(plan.layer)
    setattr(net, _ROWS, rows)
    setattr(net, _TOTALS, (total, params))
    if example_input is not None:
        inputs = example_input if isinstance(example_input, tuple) else (example_input,)
        setattr(net, _EXAMPLE, tuple(map(_remembered, inputs)))
    return net


def count_macs(net: nn.Module, example_input: object) -> None:
    """Count the MACs of a network with slots that were created without an example input."""
    layers = {name: _original(module) for name, module in _layers(net)}
    seen = trace(net, [layer for layer in layers.values() if layer is not None], example_input)
    report = layer_report(net)
    rows = []
    for row in report.rows:
        layer = layers.get(row.name)
        rows.append(row if layer is None else _counted(row, layer, seen, seen.macs))
    setattr(net, _ROWS, rows)
    params = report.params or sum(p.numel() for p in net.parameters())
    setattr(net, _TOTALS, (seen.macs, params))


def _counted(row: LayerRow, layer: nn.Module, seen: Trace, total: int | None) -> LayerRow:
    """The row of a layer with what was seen of it; total: MACs of the network."""
    calls = seen.calls.get(id(layer), [])
    if not calls:
        return row
    macs = macs_of(layer, calls, seen.batch)
    share = macs / total if macs is not None and total else None
    runs = sum(given[0] for given, _ in calls) // max(seen.batch, 1)
    return replace(row, macs=macs, share=share, runs=max(runs, 1))


def _unless_kept(row: LayerRow, kept: Mapping[str, str]) -> LayerRow:
    """The row of a layer, which is no slot if it has a reason among those kept."""
    if row.name not in kept:
        return row
    return replace(row, status="kept", reason=kept[row.name], pool=1, dilation=())


def _usual_slots(net: nn.Module, example_input: object) -> nn.Module:
    """Slots for the layers of the first usual filter that selects any.

    A network that has slots already gets no layers of other kinds beside them.
    """
    candidates = _USUAL[:1] if slots(net) else _USUAL
    kinds = {
        kind_of(layer) for _, module in _layers(net) if (layer := _original(module)) is not None
    }
    usual = [where for where in candidates if where.kind in kinds] or list(candidates)
    for where in usual:
        try:
            return put_slots(net, where, example_input)
        except NoSlotsError:
            continue
    try:
        return put_slots(net, usual[1:] or usual, example_input)  # has a reason for each layer
    except NoSlotsError as error:
        raise UserError(
            f"{error}\n  what to do: choose layers with syno.substitute(net, where=..., "
            "example_input=...)"
        ) from None


def sample_shape(net: nn.Module) -> tuple[int, ...] | None:
    """The shape of one sample of the example input by which slots were created, None without."""
    found = getattr(net, _EXAMPLE, None)
    return None if found is None else tuple(found[0].shape[1:])


def recorded_example(net: nn.Module) -> Inputs | None:
    """Return an input as the example input of `syno.substitute` was, if it had one.

    Real numbers are zeros. Token ids and masks are those of the example.
    """
    found = getattr(net, _EXAMPLE, None)
    if found is None:
        return None
    return one_or_several([torch.zeros_like(x, device="cpu") if x.is_meta else x for x in found])


def _remembered(x: torch.Tensor) -> torch.Tensor:
    """Of an input of real numbers the shape and the type alone, as a tensor without values."""
    return x.detach().to("meta") if x.is_floating_point() else x.detach().clone()


def replace_slots(net: nn.Module, operator: Operator, *, scaled: bool) -> LayerReport:
    """`syno.replace`."""
    found = checked_slots(net)

    def pack(slot: Placeholder) -> nn.Module:
        binding = slot.binding_of(operator)
        if not scaled:
            return Layer(operator, operator.complete(binding), reference=None)
        return operator.kernel_pack(binding, reference=slot.reference)

    fill(found, pack)
    return layer_report(net)


def slot_bindings(net: nn.Module, specification: Specification) -> SlotBindings:
    """`bindings` of a network's slots in order of appearance, `multiplicities` and `layer_macs`.

    A slot that inherited its sizes and does not fit the specification's variables is left out.
    UserError when that leaves none, and for a placeholder that lacks or adds a variable.
    """
    counted: dict[tuple[tuple[str, int], ...], list[int | None]] = {}
    misfits: list[str] = []
    found = checked_slots(net)
    macs = {row.name: row.macs for row in layer_report(net).rows}
    for name, slot in found.items():
        try:
            binding = slot.binding_for(specification)
        except UserError as error:
            if not slot.inherited:
                raise UserError(f"{error}\n  in placeholder '{name}'") from None
            misfits.append(f"  {name}: {str(error).splitlines()[0]}")
            continue
        missing = set(specification.variables) - set(specification.defaults) - set(binding)
        if missing:
            hint = "use Placeholder({...}), or run the network once to determine the sizes"
            if slot.inherited:
                hint = (
                    f"name the sizes of the layer {', '.join(slot.binding)}, and pass a batch "
                    "dimension through"
                )
            raise UserError(
                f"placeholder '{name}' gives no value to {', '.join(sorted(missing))}\n"
                f"  expected: a value for each of {', '.join(specification.variables)}      "
                f"got: {slot.binding if slot.inherited else binding}\n"
                f"  what to do: {hint}"
            )
        counted.setdefault(tuple(sorted(binding.items())), []).append(macs[name])
    if not counted:
        names = next(slot.input_names for slot in found.values() if slot.inherited)
        shape = ", ".join(name or "N" for name in names)
        hint = (
            f"  what to do: use the shapes of the layers, here with an input of [{shape}], "
            "with the batch dimension passed through"
        )
        raise UserError(
            "\n".join(["no slot of the network fits the specification", *misfits, hint])
        )
    known = all(count is not None for counts in counted.values() for count in counts)
    return {
        "bindings": [dict(key) for key in counted],
        "multiplicities": [len(counts) for counts in counted.values()],
        "layer_macs": [sum(c or 0 for c in counts) for counts in counted.values()]
        if known
        else None,
    }


def replace_with_packs(
    net: nn.Module, packs: Sequence[Layer], specification: Specification
) -> LayerReport:
    """`Sampler.replace`."""
    found = checked_slots(net)
    waiting = list(packs)
    for pack in waiting:
        if not isinstance(pack, Layer):
            raise UserError(
                f"expected kernel packs, got {type(pack).__name__}\n"
                "  what to do: use kernel_packs = operator.construct_kernel_packs()"
            )

    def take(slot: Placeholder) -> nn.Module:
        binding = specification.complete(slot.binding_for(specification))
        for place, pack in enumerate(waiting):
            if all(binding.get(name, size) == size for name, size in pack.binding.items()):
                return waiting.pop(place)
        raise UserError(f"no kernel pack has the sizes {slot.binding}")

    fill(found, take)
    if waiting:
        raise UserError(
            f"{len(waiting)} of {len(packs)} kernel packs are left over\n"
            f"  expected: one for each of {len(found)} slots      got: {len(packs)}"
        )
    return layer_report(net)


def fill(found: dict[str, Placeholder], pack: Callable[[Placeholder], nn.Module]) -> None:
    """Fill each slot with the result of `pack`, or restore it and record the reason.

    UserError when no slot can be filled.
    """
    for slot in found.values():
        try:
            kernel = pack(slot)
            if isinstance(kernel, Layer):
                slot.check_kernel(kernel)
        except UserError as error:
            slot.restore()
            slot.kept_because = str(error).splitlines()[0]
        else:
            slot.replace(_like(kernel, slot))
    if all(slot.kept_because is not None for slot in found.values()):
        reasons = "\n".join(f"  {name}: {slot.kept_because}" for name, slot in found.items())
        raise UserError(
            f"the operator fits no slot of the network\n{reasons}\n"
            "  expected: an operator with the shapes of a slot and integer sizes there"
        )


def layer_report(net: nn.Module) -> LayerReport:
    """Every layer that operators may replace: found, replaced, or kept and why."""
    found = slots(net)
    check_sizes(net)
    if not found:
        plain = [
            LayerRow(
                name, description(layer), None, None, reason=_NO_SLOT, params=weight_params(layer)
            )
            for name, layer in _layers(net)
        ]
        return LayerReport(tuple(plain), None, sum(p.numel() for p in net.parameters()))
    recorded: list[LayerRow] = getattr(net, _ROWS, [])
    macs, params = getattr(net, _TOTALS, (None, None))
    known = {row.name for row in recorded}
    added = [_blank(name, slot) for name, slot in found.items() if name not in known]
    ran = any(slot.shapes is not None for slot in found.values())
    rows = [
        _current(row, found[row.name], ran) if row.name in found else row
        for row in [*recorded, *added]
    ]
    return LayerReport(tuple(rows), macs, params)


def _blank(name: str, slot: Placeholder) -> LayerRow:
    original = slot.original
    layer = "placeholder" if original is None else description(original)
    params = 0 if original is None else weight_params(original)
    return LayerRow(name, layer, None, None, dict(slot.binding), "slot", params=params)


def _current(row: LayerRow, slot: Placeholder, ran: bool) -> LayerRow:
    """The row of a slot; ran: whether the network called any of its slots."""
    row = replace(row, binding=dict(slot.binding))
    kernel = slot.kernel
    if kernel is not None and slot.inherited and slot.shapes is None and ran:
        return replace(row, status="kept", reason="no call of the network reached its slot")
    if isinstance(kernel, Layer):
        macs = row.runs * kernel.operator.macs(kernel.binding)
        params = kernel.operator.params(kernel.binding)
        return replace(row, status="replaced", reason="", new_macs=macs, new_params=params)
    if kernel is not None:
        return replace(row, status="replaced", reason="", new_params=weight_params(kernel))
    if slot.kept_because is not None:
        return replace(row, status="kept", reason=slot.kept_because)
    return replace(row, status="slot", reason="")


def _layers(net: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Convolutions, linear layers and slots, but nothing inside of a slot."""
    inside: set[int] = set()
    for name, module in net.named_modules():
        if isinstance(module, Placeholder):
            inside.update(id(part) for part in module.modules())
            yield name, module
        elif (is_convolution(module) or is_linear(module)) and id(module) not in inside:
            yield name, module


def _original(module: nn.Module) -> nn.Module | None:
    return module.original if isinstance(module, Placeholder) else module


def _decide(
    row: LayerRow,
    layer: nn.Module,
    filters: Sequence[LayerFilter],
    calls: Calls | None,
) -> tuple[LayerRow, LayerFilter | None]:
    """The row with what becomes of the layer, and the filter that takes it.

    A row that has a reason already is kept for that, where a filter would take it.
    """
    row = replace(row, binding=sizes_of(layer, calls[0] if calls else None))
    kind = kind_of(layer)
    fitting = [where for where in filters if where.kind == kind]
    if not fitting:
        wanted = " or ".join(dict.fromkeys(where.kind for where in filters))
        return replace(row, reason=f"not a {wanted} layer"), None
    reason = ""
    for where in fitting:
        found = where.refusal(row.name, layer) if row.name else "it is the network itself"
        found = found or row.reason or _refusal(row, layer, where, calls)
        if not found:
            pool, dilation = _pool(layer, where), own_dilation(layer)
            return replace(row, status="slot", pool=pool, dilation=dilation), where
        reason = reason or found
    return replace(row, reason=reason), None


def _refusal(
    row: LayerRow, layer: nn.Module, where: LayerFilter, calls: Calls | None
) -> str | None:
    if calls == []:
        return "the example input does not reach it"
    if calls and len({inside for inside, _ in calls}) > 1:
        return "it works on inputs of several shapes"
    if calls and len(calls[0][0]) < _DIMENSIONS[where.kind]:
        return "its input has no batch dimension"
    small = [f"{name}={value}" for name, value in row.binding.items() if value < where.minimum]
    phase = " in each phase of its dilation" if own_dilation(layer) else ""
    return f"{', '.join(small)}{phase} is below {where.minimum}" if small else None


def _pool(layer: nn.Module, where: LayerFilter) -> int:
    convolution = isinstance(layer, nn.modules.conv._ConvNd)
    return int(layer.stride[0]) if convolution and where.pool else 1  # type: ignore[union-attr,index]


def _slot_maker(
    binding: dict[str, int], where: LayerFilter, calls: Calls | None
) -> Callable[[nn.Module], Placeholder]:
    """What makes a slot of a layer."""

    def make(layer: nn.Module) -> Placeholder:
        if isinstance(layer, nn.modules.conv._ConvNd):
            names: tuple[str | None, ...] = (None, "C_in", *sizes_of_map(layer))
            pool, stride = _pool(layer, where), int(layer.stride[0])
            slot = Placeholder(
                binding,
                original=layer,
                input_names=names,
                pool=pool,
                stride=stride,
                dilation=own_dilation(layer),
            )
        else:
            names = (None, "seq_len", "H_in") if "seq_len" in binding else (None, "H_in")
            slot = Placeholder(binding, original=layer, input_names=names)
        if calls:
            slot.learn(*calls[0])
        return slot

    return make


def _like(kernel: nn.Module, slot: Placeholder) -> nn.Module:
    """The kernel on the device, of the type and in the mode of what it replaces."""
    first = None if slot.original is None else next(slot.original.parameters(), None)
    if first is not None:
        kernel = kernel.to(first.device, first.dtype)
    return kernel.train(slot.training)
