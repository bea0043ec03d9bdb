"""Convolutions of low rank: a convolution to fewer channels, then one of 1x1."""

from __future__ import annotations

import torch
from torch import nn

from syno._util.errors import UserError
from syno._util.network_copy import copy_network
from syno.network.placeholder import checked_slots

_LEAST = 2  # channels between the two


def low_rank(net: nn.Module, share: float) -> nn.Module:
    """A copy of a network whose slots hold convolutions of low rank.

    The weights are those of the singular value decomposition of each layer's weight, which are the
    nearest of that rank (Denton et al. 2014, "Exploiting linear structure within convolutional
    networks").

    Args:
        net: a network with original layers in its slots.
        share: the rank as a share of the greatest that saves MACs.

    Raises:
        UserError: no slot holds a convolution or linear layer.
    """
    net = copy_network(net).eval().requires_grad_(True)
    done = 0
    for slot in checked_slots(net).values():
        layer = slot.original
        pair = _pair(layer, share)
        if pair is not None:
            slot.pool = None  # the first of the two has the stride of the layer
            slot.replace(pair)
            done += 1
    if not done:
        raise UserError("no slot holds a convolution or a linear layer without groups")
    return net


def _pair(layer: nn.Module | None, share: float) -> nn.Sequential | None:
    if isinstance(layer, nn.Conv2d) and layer.groups == 1:
        matrix = layer.weight.detach().flatten(1)
        rank = _rank(matrix, share)
        first, second = _decomposed(matrix, rank)
        inner = nn.Conv2d(
            layer.in_channels,
            rank,
            layer.kernel_size,  # type: ignore[arg-type]
            stride=layer.stride,  # type: ignore[arg-type]
            # A slot of a dilated layer computes on each phase of the map.
            padding=layer.padding if max(layer.dilation) == 1 else "same",  # type: ignore[arg-type]
            bias=False,
        )
        outer = nn.Conv2d(rank, layer.out_channels, 1, bias=False)
        inner.weight = nn.Parameter(first.reshape(rank, *layer.weight.shape[1:]))
        outer.weight = nn.Parameter(second[:, :, None, None])
        return nn.Sequential(inner, outer)
    if isinstance(layer, nn.Linear):
        rank = _rank(layer.weight.detach(), share)
        first, second = _decomposed(layer.weight.detach(), rank)
        pair = nn.Sequential(
            nn.Linear(layer.in_features, rank, bias=False),
            nn.Linear(rank, layer.out_features, bias=False),
        )
        for part, weight in zip(pair, (first, second), strict=True):
            part.weight = nn.Parameter(weight)
        return pair
    return None


def _rank(matrix: torch.Tensor, share: float) -> int:
    """The rank, of which the greatest saves nothing."""
    outside, inside = matrix.shape
    return max(round(share * outside * inside / (outside + inside)), _LEAST)


def _decomposed(matrix: torch.Tensor, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    u, s, v = torch.linalg.svd(matrix, full_matrices=False)
    root = s[:rank].sqrt()
    return (root[:, None] * v[:rank]).clone(), (u[:, :rank] * root).clone()
