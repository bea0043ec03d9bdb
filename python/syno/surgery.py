"""Puts slots into a network and fills them. Needs torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from syno._errors import UserError
from syno.layers import LayerFilter, LayerReport, LayerRow, times
from syno.operator import Operator
from syno.placeholder import KernelPack, Placeholder, checked_slots, slots
from syno.spec import Specification

_ROWS = "_syno_layers"
_KINDS: dict[str, type[nn.Module]] = {"conv2d": nn.Conv2d, "linear": nn.Linear}


def put_slots(net: nn.Module, where: LayerFilter, example_input: Any | None) -> nn.Module:
    """`syno.substitute`."""
    if not isinstance(net, nn.Module):
        raise UserError(f"expected a torch.nn.Module, got {type(net).__name__}")
    if not isinstance(where, LayerFilter):
        raise UserError(f"'where' is a filter such as syno.conv2d(kernel=3), got {where!r}")
    net = copy.deepcopy(net)
    earlier = {row.name: row for row in layer_report(net).rows if row.name in slots(net)}
    seen = _observe(net, example_input) if example_input is not None else None
    total = sum(_macs(layer, calls[0]) for layer, calls in (seen or {}).values())
    rows: list[LayerRow] = []
    made: dict[int, Placeholder] = {}
    for name, layer in _layers(net):
        if isinstance(layer, Placeholder):
            rows.append(earlier[name])
            continue
        calls = seen.get(id(layer), (layer, []))[1] if seen is not None else None
        macs = _macs(layer, calls[0]) if calls else None
        row = LayerRow(name, _describe(layer), macs, None if macs is None else macs / total)
        if isinstance(layer, _KINDS[where.kind]):
            row = _decide(row, layer, where, calls)
        else:
            row = replace(row, reason=f"not a {where.kind} layer")
        rows.append(row)
        if row.status == "slot":
            made[id(layer)] = _slot(layer, row.binding)
    if not made:
        reasons = "\n".join(
            f"  {row.name} ({row.layer}): {row.reason or 'is a slot already'}" for row in rows[:20]
        )
        raise UserError(
            f"the network {type(net).__name__} has no slots\n"
            "  expected: at least one layer that `where` describes      "
            f"got: none of {len(rows)} layers\n"
            + (reasons or "  it has no convolution and no linear layer")
        )
    _put(net, made)
    setattr(net, _ROWS, rows)
    return net


def replace_slots(net: nn.Module, operator: Operator) -> LayerReport:
    """`syno.replace`."""
    found = checked_slots(net)
    specification = operator.specification

    def pack(slot: Placeholder) -> nn.Module:
        binding = slot.binding if specification is None else slot.binding_for(specification)
        return operator.kernel_pack(binding)

    fill(found, pack)
    return layer_report(net)


def slot_bindings(net: nn.Module, specification: Specification) -> dict[str, Any]:
    """`bindings` of a network's slots in order of appearance, `multiplicities` and `layer_macs`.

    A slot that inherited its sizes and does not fit the specification's variables is left out.
    UserError when that leaves none, and for a placeholder that lacks or adds a variable.
    """
    counted: dict[tuple[tuple[str, int], ...], list[int | None]] = {}
    refused: list[str] = []
    found = checked_slots(net)
    macs = {row.name: row.macs for row in layer_report(net).rows}
    for name, slot in found.items():
        try:
            binding = slot.binding_for(specification)
        except UserError as error:
            if not slot.inherited:
                raise UserError(f"{error}\n  in placeholder '{name}'") from None
            refused.append(f"  {name}: {str(error).splitlines()[0]}")
            continue
        missing = set(specification.variables) - set(specification.defaults) - set(binding)
        if missing:
            hint = "Placeholder({...}), or run the network once: its slots see their sizes"
            if slot.inherited:
                hint = (
                    f"name the sizes of the layer {', '.join(slot.binding)}, and pass a batch "
                    "dimension through"
                )
            raise UserError(
                f"placeholder '{name}' gives no value to {', '.join(sorted(missing))}\n"
                f"  expected: a value for each of {', '.join(specification.variables)}      "
                f"got: {slot.binding if slot.inherited else binding}\n"
                f"  hint: {hint}"
            )
        counted.setdefault(tuple(sorted(binding.items())), []).append(macs[name])
    if not counted:
        hint = (
            "  what to do: shapes as the layers have them, such as [N, C_in: unordered, H, H], "
            "with the batch dimension passed through"
        )
        raise UserError(
            "\n".join(["no slot of the network fits the specification", *refused, hint])
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
    net: nn.Module, packs: Sequence[KernelPack], specification: Specification
) -> LayerReport:
    """`Sampler.replace`."""
    found = checked_slots(net)
    waiting = list(packs)
    for pack in waiting:
        if not isinstance(pack, KernelPack):
            raise UserError(
                f"expected kernel packs, got {type(pack).__name__}\n"
                "  hint: kernel_packs = operator.construct_kernel_packs()"
            )

    def take(slot: Placeholder) -> nn.Module:
        binding = specification.complete(slot.binding_for(specification))
        for place, pack in enumerate(waiting):
            if all(binding.get(name, size) == size for name, size in pack.binding.items()):
                return waiting.pop(place)
        raise UserError(f"no kernel pack has its sizes {slot.binding}")

    fill(found, take)
    if waiting:
        raise UserError(
            f"{len(waiting)} of {len(packs)} kernel packs are left over\n"
            f"  expected: one for each of {len(found)} slots      got: {len(packs)}"
        )
    return layer_report(net)


def fill(found: dict[str, Placeholder], pack: Callable[[Placeholder], nn.Module]) -> None:
    """Fills each slot with what `pack` makes for it, or restores it with the reason of its refusal.

    UserError when no slot can be filled.
    """
    for slot in found.values():
        try:
            kernel = pack(slot)
        except UserError as error:
            slot.restore()
            slot.kept_because = str(error).splitlines()[0]
        else:
            slot.replace(_like(kernel, slot))
    if all(slot.kept_because is not None for slot in found.values()):
        reasons = "\n".join(f"  {name}: {slot.kept_because}" for name, slot in found.items())
        raise UserError(f"the operator fits no slot of the network\n{reasons}")


def layer_report(net: nn.Module) -> LayerReport:
    """Every layer that operators may replace: found, replaced, or kept and why."""
    recorded: list[LayerRow] = getattr(net, _ROWS, [])
    found = slots(net)
    known = {row.name for row in recorded}
    rows = [
        row for name, slot in found.items() if name not in known for row in [_blank(name, slot)]
    ]
    return LayerReport(
        tuple(
            _current(row, found[row.name]) if row.name in found else row
            for row in [*recorded, *rows]
        )
    )


def _blank(name: str, slot: Placeholder) -> LayerRow:
    layer = "placeholder" if slot.original is None else _describe(slot.original)
    return LayerRow(name, layer, None, None, dict(slot.binding), "slot")


def _current(row: LayerRow, slot: Placeholder) -> LayerRow:
    row = replace(row, binding=dict(slot.binding))
    if slot.kernel is not None:
        return replace(row, status="replaced", reason="")
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
        elif isinstance(module, (nn.Conv2d, nn.Linear)) and id(module) not in inside:
            yield name, module


def _decide(
    row: LayerRow,
    layer: nn.Module,
    where: LayerFilter,
    calls: list[tuple[torch.Size, torch.Size]] | None,
) -> LayerRow:
    reason = where.refusal(row.name, layer) if row.name else "it is the network itself"
    if reason is None and calls == []:
        reason = "the example input does not reach it"
    if reason is None and calls and len({inside for inside, _ in calls}) > 1:
        reason = "it works on inputs of several shapes"
    binding = _binding(layer, calls[0][1] if calls else None)
    small = [f"{name}={value}" for name, value in binding.items() if value < where.minimum]
    if reason is None and small:
        reason = f"{', '.join(small)} is below {where.minimum}"
    if reason is not None:
        return replace(row, binding=binding, reason=reason)
    return replace(row, binding=binding, status="slot")


def _binding(layer: nn.Module, output: torch.Size | None) -> dict[str, int]:
    """Sizes of a layer; those of its map after its own stride."""
    if isinstance(layer, nn.Conv2d):
        binding = {"C_in": layer.in_channels, "C_out": layer.out_channels}
        return binding | ({} if output is None else {"H": output[-2], "W": output[-1]})
    assert isinstance(layer, nn.Linear)
    binding = {"H_in": layer.in_features, "H_out": layer.out_features}
    return binding | ({"seq_len": output[1]} if output is not None and len(output) == 3 else {})


def _slot(layer: nn.Module, binding: dict[str, int]) -> Placeholder:
    if isinstance(layer, nn.Conv2d):
        names: tuple[str | None, ...] = (None, "C_in", "H", "W")
        return Placeholder(binding, original=layer, input_names=names, pool=int(layer.stride[0]))
    names = (None, "seq_len", "H_in") if "seq_len" in binding else (None, "H_in")
    return Placeholder(binding, original=layer, input_names=names)


def _put(net: nn.Module, made: dict[int, Placeholder]) -> None:
    """Sets each slot where its original stands, in every place that shares it."""
    for parent in list(net.modules()):
        for name, child in list(parent._modules.items()):  # named_children skips repeats
            if id(child) in made and not isinstance(parent, Placeholder):
                setattr(parent, name, made[id(child)])


Calls = dict[int, tuple[nn.Module, list[tuple[torch.Size, torch.Size]]]]


def _observe(net: nn.Module, example_input: Any) -> Calls:
    """Shapes (input, output) of each call of each layer when the network runs on the example."""
    inputs = example_input if isinstance(example_input, tuple) else (example_input,)
    if not all(isinstance(x, torch.Tensor) for x in inputs):
        raise UserError("'example_input' is a tensor, or a tuple of the network's arguments")
    calls: Calls = {}

    def note(layer: nn.Module, args: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
        calls.setdefault(id(layer), (layer, []))[1].append((args[0].shape, output.shape))

    hooks = []
    for _, module in _layers(net):
        layer = module.original if isinstance(module, Placeholder) else module
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            hooks.append(layer.register_forward_hook(note))
    try:
        with _evaluating(net), torch.no_grad():
            net(*inputs)
    except (RuntimeError, TypeError, ValueError) as error:
        shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
        raise UserError(
            f"the network {type(net).__name__} fails on the example input: {error}\n"
            f"  in example_input of shape {shapes}"
        ) from error
    finally:
        for hook in hooks:
            hook.remove()
    return calls


@contextmanager
def _evaluating(net: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in net.modules()}
    net.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def _macs(layer: nn.Module, call: tuple[torch.Size, torch.Size]) -> int:
    """Multiply-adds of a layer for one sample."""
    output = call[1]
    if isinstance(layer, nn.Conv2d):
        kernel = layer.kernel_size[0] * layer.kernel_size[1]
        return layer.in_channels // layer.groups * kernel * output[-3:].numel()
    assert isinstance(layer, nn.Linear)
    return layer.in_features * output[1:].numel()


def _describe(layer: nn.Module) -> str:
    if isinstance(layer, nn.Conv2d):
        text = f"conv {times(layer.kernel_size)}"
        text += f" /{layer.stride[0]}" if layer.stride[0] > 1 else ""
        return text + (f" groups {layer.groups}" if layer.groups > 1 else "")
    return "linear" if isinstance(layer, nn.Linear) else type(layer).__name__


def _like(kernel: nn.Module, slot: Placeholder) -> nn.Module:
    """The kernel on the device, of the type and in the mode of what it replaces."""
    first = None if slot.original is None else next(slot.original.parameters(), None)
    if first is not None:
        kernel = kernel.to(first.device, first.dtype)
    return kernel.train(slot.training)
