"""Layers that stay, whatever filter selects them. Requires PyTorch."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.network_copy import copy_network
from syno.network.exchange import can_become
from syno.network.layer_kinds import features_of, is_convolution
from syno.network.placeholder import Placeholder, hidden_attributes
from syno.network.trace import Trace

# The greatest difference, as a share of the greatest result, by which sums of other orders differ.
_TOLERANCE = 1e-3


def check_initialized(net: nn.Module) -> None:
    """UserError for parameters that get their sizes in the first run."""
    for name, tensor in [*net.named_parameters(), *net.named_buffers()]:
        if nn.parameter.is_lazy(tensor):
            raise UserError(
                f"'{name}' of the network {type(net).__name__} has no size yet\n"
                "  what to do: run the network once, net(example_input), before its layers become "
                "slots"
            )


def parts_of_attention(net: nn.Module) -> set[nn.Module]:
    """Layers whose weights nn.MultiheadAttention takes without calling them."""
    return {
        part
        for module in net.modules()
        if isinstance(module, nn.MultiheadAttention)
        for part in module.children()
    }


def kept_because(layer: nn.Module, attention: Collection[nn.Module], seen: Trace | None) -> str:
    """Why a layer stays, whatever the filter; empty if it may become a slot."""
    if layer in attention:
        return "nn.MultiheadAttention uses its weight without calling it"
    if seen is not None and id(layer) in seen.unbatched:
        return "its first dimension is not the batch"
    if seen is not None and id(layer) in seen.unusual:
        return seen.unusual[id(layer)]
    if hidden := hidden_attributes(layer):
        return f"a slot has another attribute '{hidden[0]}' than the layer"
    if not can_become(layer, Placeholder):
        return f"its class {type(layer).__name__} does not allow a slot in place of it"
    if _has_own_forward(layer) and not _is_affine(layer):
        return f"its class {type(layer).__name__} computes more than a linear map and a bias"
    return ""


def _has_own_forward(layer: nn.Module) -> bool:
    """Whether a layer computes otherwise than the class of torch that it derives from."""
    owner = next(kind for kind in type(layer).__mro__ if "forward" in vars(kind))
    return "forward" in vars(layer) or not owner.__module__.startswith("torch.nn.modules.")


def _is_affine(layer: nn.Module) -> bool:
    """Whether a layer adds its bias to a linear map of its input, as far as random inputs show."""
    weight = layer.weight
    assert isinstance(weight, torch.Tensor)
    if weight.device.type == "meta" or not weight.is_floating_point():
        return True  # there are no values to see it by
    copied = copy_network(layer).cpu().float().eval()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        x = torch.randn(_input_of(layer))
        try:
            zero, one, two = (copied.forward(factor * x) for factor in (0, 1, -2))
        except Exception:  # a layer of other inputs, or one that needs more than its input
            return False
    if not all(isinstance(y, torch.Tensor) for y in (zero, one, two)):
        return False
    bias = getattr(copied, "bias", None)
    added = torch.zeros(1) if bias is None else bias.detach()
    if is_convolution(layer):
        added = added.view(-1, *[1] * (x.dim() - 2))
    differences = zero - added, (two - zero) + 2 * (one - zero)
    most = float(one.abs().max()) + 1e-6
    return all(float(each.abs().max()) <= _TOLERANCE * most for each in differences)


def _input_of(layer: nn.Module) -> list[int]:
    """The shape of an input that any layer of this kind takes."""
    if not is_convolution(layer):
        return [2, features_of(layer)[0]]
    assert isinstance(layer, nn.modules.conv._ConvNd)
    sides = zip(layer.kernel_size, layer.dilation, layer.stride, strict=True)
    return [2, layer.in_channels, *(2 * (d * (k - 1) + step) for k, d, step in sides)]
