"""Models by name with operators in their slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from syno._util.errors import UserError

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno.network.models.info import ModelOptions


def networks_with_operators(
    model: str,
    options: ModelOptions,
    size: int | None,
    operators: Sequence[str],
    sizes: Mapping[str, int],
    *,
    batch: int = 1,
    seed: int = 0,
) -> tuple[dict[str, nn.Module], torch.Tensor]:
    """Build a model with each operator in its slots, and an input for all of them.

    Args:
        model: the name of the model.
        options: options of the model.
        size: height and width of the images in pixels; None: that of the model.
        operators: operators as for `syno train`; `none` is the original network.
        sizes: values of coefficients.
        batch: batch size of the input.
        seed: of the weights and of the input.

    Returns:
        The networks in evaluation mode by the name of the operator, the original first if it is
        wanted, and a normally distributed input [batch, ...].

    Raises:
        UserError: the model does not process images, or an operator fits no slot.
    """
    import torch

    from syno._util.network_copy import copy_network
    from syno.network import models
    from syno.network.substitute import replace
    from syno.operands.layers import ORIGINAL, fit_to_network, layer_specification
    from syno.operands.lookup import named_operators

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        original = image_model(model, options, size).eval()
        example = torch.randn(batch, *models.built(original).input_shape)
        found = {ORIGINAL: original} if ORIGINAL in operators else {}
        wanted = [name for name in operators if name != ORIGINAL]
        if wanted:
            template = models.slots(original)
            known = layer_specification(template, sizes)
            for named in named_operators(wanted, layers=known):
                net = copy_network(template)
                replace(net, fit_to_network(named, net, sizes))
                found[named.name] = net.eval()
    return found, example


def image_model(model: str, options: ModelOptions, size: int | None) -> nn.Module:
    """Build a model for images; its initial weights follow from the random state of torch.

    Raises:
        UserError: the model does not process images.
    """
    from syno.network import models

    if models.describe(model).images is None:
        raise UserError(
            f"the model '{model}' does not process images\n"
            "  what to do: name another model of `syno models`"
        )
    return models.build(model, size=size, **options)
