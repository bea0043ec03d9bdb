"""What the layers of a trained network receive and return, for fits. Needs torch."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.inputs import Inputs, arguments, first, samples_in
from syno.network.placeholder import Placeholder, checked_slots

MOST_BYTES = 2 << 30


@dataclass(frozen=True)
class Activations:
    """x: inputs of a kernel in the slot, after pooling. y: the results of the original layer,
    without its bias. Both have the images in dimension 0."""

    x: torch.Tensor
    y: torch.Tensor


def record(
    net: nn.Module,
    batches: Iterable[Inputs],
    *,
    most_bytes: int = MOST_BYTES,
    only: Collection[str] | None = None,
) -> dict[str, Activations]:
    """Run a trained network in evaluation mode, and keep what its slots receive and return.

    Args:
        net: a network whose slots have their original layers.
        batches: inputs of the network, tuples where it takes several. Only as many samples
            are used as `most_bytes` allows.
        most_bytes: the largest memory of what is kept, for all slots together.
        only: the slots to record; default: all.

    Raises:
        UserError: the network has no slots, a slot has no original or holds an operator, there are
            no batches, or one image needs more than `most_bytes`.
    """
    slots = checked_originals(net)
    found = {name: slot for name, slot in slots.items() if only is None or name in only}
    kept: dict[str, list[tuple[torch.Tensor, torch.Tensor]]] = {name: [] for name in found}
    hooks = [_hook(slot, kept[name]) for name, slot in found.items()]
    training = net.training
    net.eval()
    left: int | None = None
    images = 0
    try:
        with torch.no_grad():
            for batch in batches:
                if left is None:
                    left = _images(net, batch, kept, most_bytes)
                if left <= 0:
                    break
                taken = first(batch, left)
                net(*arguments(taken))
                images += samples_in(taken)
                left -= samples_in(taken)
    finally:
        for hook in hooks:
            hook.remove()
        net.train(training)
    if images == 0:
        raise UserError("there are no inputs to record activations of")
    missing = [name for name, pairs in kept.items() if not pairs]
    if missing:
        raise UserError(f"the network never calls its slot '{missing[0]}'")
    return {
        name: Activations(torch.cat([x for x, _ in pairs]), torch.cat([y for _, y in pairs]))
        for name, pairs in kept.items()
    }


def bytes_of(net: nn.Module, sample: Inputs) -> dict[str, int]:
    """What `record` keeps of one sample, by slot. UserError as there.

    sample: an input with a batch of 1.
    """
    found = record(net, [sample], most_bytes=sys.maxsize)
    return {name: each.x.nbytes + each.y.nbytes for name, each in found.items()}


def checked_originals(net: nn.Module) -> dict[str, Placeholder]:
    """The slots of a network. UserError unless each of them holds its original layer."""
    found = checked_slots(net)
    for name, slot in found.items():
        if slot.original is None:
            raise UserError(
                f"slot '{name}' has no original layer to fit an operator to\n"
                "  what to do: make slots of a trained network with syno.substitute"
            )
        if slot.kernel is not None:
            raise UserError(
                f"slot '{name}' holds an operator instead of its original layer\n"
                "  what to do: call restore() on the slots of the network"
            )
    return found


def _hook(
    slot: Placeholder, pairs: list[tuple[torch.Tensor, torch.Tensor]]
) -> torch.utils.hooks.RemovableHandle:
    def keep(_: nn.Module, inputs: tuple[torch.Tensor, ...], result: torch.Tensor) -> None:
        pairs.append((slot.kernel_input(inputs[0]).clone(), slot.kernel_output(result).clone()))

    return slot.register_forward_hook(keep)


def _images(
    net: nn.Module,
    batch: Inputs,
    kept: dict[str, list[tuple[torch.Tensor, torch.Tensor]]],
    most_bytes: int,
) -> int:
    """How many images `most_bytes` allows, from what one of them needs."""
    if samples_in(batch) == 0:
        return 0
    net(*arguments(first(batch, 1)))
    need = 0
    for pairs in kept.values():
        need += sum(tensor.nbytes for pair in pairs for tensor in pair)
        pairs.clear()
    if need > most_bytes:
        raise UserError(
            f"the activations of one image take {need} bytes\n"
            f"  expected: at most {most_bytes} bytes\n"
            "  what to do: raise most_bytes, or make fewer slots"
        )
    return most_bytes // max(1, need)
