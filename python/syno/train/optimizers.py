"""Optimisers of recipes, weight decay and learning-rate scales of single weights.

A module or a parameter may have an attribute `lr_scale`, a factor of the learning rate:

    module.lr_scale = 0.5                 all weights of the module and of those inside it
    module.lr_scale = {"w0": 0.5}         some weights of the module, by name
    parameter.lr_scale = 0.5              one weight; a copy of the module loses it

The nearest one counts: the parameter's, else that of its module, else that of the module around.

Kernels of operators have `step_scales` besides, a factor for each weight that makes up for its
number, size and scale beside those of the layer replaced (syno/initial_scales.py). It is meant for
SGD, whose steps grow with gradients; AdamW's do not, and it takes the root. A recipe with
`step_scales = false` leaves them out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypedDict

import torch
from torch import nn

from syno._util import checks
from syno._util.errors import UserError
from syno.train.recipe import Recipe

_NORMALISATIONS = (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm)


def make_optimizer(net: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The optimiser of the recipe. Raises UserError for a network without parameters to train."""
    groups = [dict(group) for group in parameter_groups(net, recipe)]
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=recipe.betas)
    return torch.optim.SGD(
        groups,
        lr=recipe.learning_rate,
        momentum=recipe.momentum,
        nesterov=recipe.nesterov and recipe.momentum > 0,
    )


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Sets the learning rate, each group by its own scale."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["lr_scale"]


class ParameterGroup(TypedDict):
    """Parameters that are updated alike; lr_scale: of the learning rate."""

    params: list[nn.Parameter]
    weight_decay: float
    lr_scale: float


def parameter_groups(net: nn.Module, recipe: Recipe) -> list[ParameterGroup]:
    """Parameters by weight decay and `lr_scale`, in the order in which they are met."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    seen: set[nn.Parameter] = set()
    for module, name, parameter, scale in _scaled(net, 1.0, ""):
        if parameter in seen or not parameter.requires_grad:
            continue
        seen.add(parameter)
        if recipe.step_scales:
            step = getattr(module, "lr_multipliers", {}).get(name, 1.0)
            scale *= math.sqrt(step) if recipe.optimizer == "adamw" else step
        free = isinstance(module, _NORMALISATIONS) or name == "bias"
        decay = recipe.weight_decay if recipe.decay_everything or not free else 0.0
        groups.setdefault((decay, scale), []).append(parameter)
    if not seen:
        raise UserError("the network has no parameters to train")
    return [
        {"params": parameters, "weight_decay": decay, "lr_scale": scale}
        for (decay, scale), parameters in groups.items()
    ]


def _scaled(
    module: nn.Module, around: float, where: str
) -> Iterator[tuple[nn.Module, str, nn.Parameter, float]]:
    """(module, name in it, parameter, scale) of all parameters."""
    own = getattr(module, "lr_scale", None)
    named: Mapping[str, object] = own if isinstance(own, Mapping) else {}
    unknown = sorted(set(named) - {name for name, _ in module.named_parameters(recurse=False)})
    if unknown:
        raise UserError(
            f"lr_scale of module '{where or type(module).__name__}' names '{unknown[0]}', which is "
            "no parameter of it"
        )
    if own is not None and not named:
        around = _checked(own, where) if not isinstance(own, Mapping) else around
    for name, parameter in module.named_parameters(recurse=False):
        scale = getattr(parameter, "lr_scale", named.get(name))
        path = f"{where}.{name}".lstrip(".")
        yield module, name, parameter, around if scale is None else _checked(scale, path)
    for name, child in module.named_children():
        yield from _scaled(child, around, f"{where}.{name}".lstrip("."))


def _checked(scale: object, where: str) -> float:
    if not checks.is_number(scale) or not 0.0 <= scale < math.inf:
        raise UserError(f"lr_scale of '{where}' is {scale!r}\n  expected: a factor of at least 0")
    return float(scale)
