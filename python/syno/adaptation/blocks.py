"""Blocks of a network that can be left out: modules that give what has the shape of what they get.

A residual block without its branch gives what it got. Needs torch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import nn

from syno._util.hooks import removed_after
from syno._util.inputs import Inputs, arguments
from syno._util.network_copy import copy_network
from syno._util.trial_calls import tensors_of
from syno.network.exchange import exchange


def removable_blocks(net: nn.Module, example: Inputs) -> list[str]:
    """The names of blocks without which a network still runs, and gives results of its shapes.

    They have parts with weights, are called once, and return a tensor of the shape of their first
    argument. Blocks may lie in each other.

    Args:
        net: the network in evaluation mode, without slots.
        example: an input of it.
    """
    fitting: dict[str, bool] = {}

    def look(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, inputs: tuple[object, ...], result: object) -> None:
            one = inputs[0] if inputs else None
            fitting[name] = (
                name not in fitting
                and isinstance(one, torch.Tensor)
                and isinstance(result, torch.Tensor)
                and (one.shape, one.dtype) == (result.shape, result.dtype)
            )

        return hook

    hooks = [
        module.register_forward_hook(look(name))
        for name, module in net.named_modules()
        if name and any(module.children()) and any(p.dim() > 1 for p in module.parameters())
    ]
    with removed_after(hooks):
        shapes = result_shapes(net, example)
    return [
        name
        for name, fits in fitting.items()
        if fits and gives_shapes(functools.partial(without_blocks, net, [name]), example, shapes)
    ]


def result_shapes(net: nn.Module, example: Inputs) -> list[torch.Size]:
    """The shapes of a network's results."""
    with torch.no_grad():
        return [each.shape for each in tensors_of(net(*arguments(example)))]


def gives_shapes(make: Callable[[], nn.Module], example: Inputs, shapes: list[torch.Size]) -> bool:
    """Whether a network without some of its parts can be made and run, with results of shapes."""
    try:
        return result_shapes(make(), example) == shapes
    except Exception:  # whatever its code raises for other shapes, or for parts that are gone
        return False


def chosen_blocks(distances: Mapping[str, float]) -> list[str]:
    """Those of all blocks that it may be good to leave out.

    A block of which the network feels no less than of one around it is none: it is the branch of a
    residual block, whose results happen to have the same shape.

    Args:
        distances: of the network without each block.
    """
    return [
        name
        for name, far in distances.items()
        if not any(
            name.startswith(f"{other}.") and distance <= far
            for other, distance in distances.items()
        )
    ]


def without_blocks(net: nn.Module, names: Iterable[str]) -> nn.Module:
    """A copy of a network without blocks, in place of which their inputs go on."""
    net = copy_network(net)
    for name in names:
        exchange(net.get_submodule(name), LeftOut())
    return net


class LeftOut(nn.Module):
    """Stands where a block was, and gives its first argument."""

    def forward(self, x: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
        """The input as it is."""
        return x
