"""What `syno bench network` measures, and the result as plain values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from syno._util.errors import UserError
from syno.store.environment import capture_environment

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno.engines.compare import Comparison


def networks_with_operators(
    model: str,
    options: Mapping[str, Any],
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


def image_model(model: str, options: Mapping[str, Any], size: int | None) -> nn.Module:
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


def described(found: Comparison, model: str, example: torch.Tensor) -> dict[str, object]:
    """Return everything that was measured, as plain values, with the machine."""
    return {
        "model": model,
        "input": list(example.shape),
        **found.to_json(),
        "packages": _packages(),
        "environment": dataclasses.asdict(capture_environment(threads=found.threads, rules="")),
    }


def _packages() -> dict[str, str]:
    """The versions of the packages that hold the engines."""
    from importlib import metadata

    versions = {}
    for name in ("torch", "onnxruntime", "openvino", "apache-tvm"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
