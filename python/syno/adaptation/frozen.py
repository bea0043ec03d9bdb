"""Parameters of a network that its user has frozen: they stay as they are. Needs torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import nn

from syno.network.placeholder import slots

# Frozen parameters under the names that they have without slots, and their shapes.
Frozen = Mapping[str, torch.Size]


def frozen_parameters(net: nn.Module) -> Frozen:
    """The parameters that need no gradient.

    None of them where that is all: such a network was frozen to be used.
    """
    every = dict(_named(net))
    found = {name: p.shape for name, p in every.items() if not p.requires_grad}
    return found if len(found) < len(every) else {}


def freeze(net: nn.Module, frozen: Frozen) -> None:
    """Let all parameters of a network be trained but those that are frozen.

    A parameter of another shape, such as one with fewer channels, is another one.
    """
    for name, parameter in _named(net):
        parameter.requires_grad_(frozen.get(name) != parameter.shape)


def _named(net: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Parameters under the names that they have where original layers are in no slots."""
    inside = [f"{name}." for name, slot in slots(net).items() if slot.kernel is None]
    for name, parameter in net.named_parameters():
        for slot in inside:
            if name.startswith(f"{slot}layer."):
                name = slot + name.removeprefix(f"{slot}layer.")
        yield name, parameter
