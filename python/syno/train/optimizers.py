"""The optimizers of recipes, with weight decay and learning-rate multipliers per parameter.

A module or a parameter may have an attribute `lr_scale`, a multiplier of the learning rate:

    module.lr_scale = 0.5                 all weights of the module and of those inside it
    module.lr_scale = {"w0": 0.5}         some weights of the module, by name
    parameter.lr_scale = 0.5              one weight; a copy of the module loses it

The nearest attribute applies: that of the parameter, or else of its module, or else of the module
around.

Kernels of operators have `lr_multipliers` as well: a multiplier for each weight that compensates
for the number, size and scale of the weights, compared with those of the replaced layer
(syno/operators/initialization.py). It is chosen for SGD, whose steps are proportional to gradients.
AdamW, whose steps are not, uses its square root. A recipe with `step_scales = false` uses none.
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

_NORMALIZATIONS = (nn.modules.batchnorm._BatchNorm, nn.LayerNorm, nn.GroupNorm)


def make_optimizer(net: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Make the optimizer of a recipe.

    Raises:
        UserError: for a network without trainable parameters.
    """
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
    """Set the learning rate, times the multiplier of each group."""
    for group in optimizer.param_groups:
        group["lr"] = rate * group["lr_scale"]


class ParameterGroup(TypedDict):
    """Parameters with equal weight decay and learning-rate multiplier (`lr_scale`)."""

    params: list[nn.Parameter]
    weight_decay: float
    lr_scale: float


def parameter_groups(net: nn.Module, recipe: Recipe) -> list[ParameterGroup]:
    """Group the parameters of a network by weight decay and learning-rate multiplier."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    seen: set[nn.Parameter] = set()
    for module, name, parameter, scale in _scaled(net, 1.0, ""):
        if parameter in seen or not parameter.requires_grad:
            continue
        seen.add(parameter)
        if recipe.step_scales:
            step = getattr(module, "lr_multipliers", {}).get(name, 1.0)
            scale *= math.sqrt(step) if recipe.optimizer == "adamw" else step
        free = isinstance(module, _NORMALIZATIONS) or name == "bias"
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
    """Iterate over (module, name in it, parameter, multiplier) of all parameters."""
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
