"""ResNet-18 as it is deployed, with operators in its 3x3 layers if asked for."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F
from cases import DEVICE, GROUPS, SHRINK, first_of, packed_blocks, second_of
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.downsample = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rest = x if self.downsample is None else self.downsample(x)
        return F.relu(self.conv2(F.relu(self.conv1(x))) + rest)


class ResNet18(nn.Module):
    """With its normalisations folded into the convolutions, as it is deployed; random weights."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3)
        widths = (64, 64, 128, 256, 512)
        pairs = itertools.pairwise(widths)
        self.blocks = nn.Sequential(
            *(each for a, b in pairs for each in (Block(a, b), Block(b, b)))
        )
        self.fc = nn.Linear(512, 1000)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
                module.weight.data *= 0.7
                nn.init.normal_(module.bias, 0.0, 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(x)), 3, 2, 1)
        return self.fc(self.blocks(x).mean((2, 3)))


def resnet18() -> ResNet18:
    torch.manual_seed(0)
    return ResNet18().eval().to(DEVICE)


class OperatorConvolution(nn.Module):
    """Operator 1 or 2 in place of a 3x3 convolution, as the reference computes it."""

    def __init__(self, kind: str, channels: int, bias: torch.Tensor) -> None:
        super().__init__()
        groups, between = min(GROUPS, channels // 2), channels // SHRINK
        across = 3 if kind == "operator-1" else 1
        self.kind, self.groups = kind, groups
        self.small = nn.Parameter(
            torch.randn(channels, 3, between // groups) * (channels // groups) ** -0.5
        )
        self.large = nn.Parameter(
            torch.randn(3, across, between, channels) * (3 * across * between) ** -0.5 * 0.7
        )
        self.bias = nn.Parameter(bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = first_of(x, self.small, self.groups, self.kind)
        return second_of(z, self.large, self.kind) + self.bias[None, :, None, None]

    def packed(self, design: str, block: int) -> torch.Tensor:
        """The first weight, as the design takes it."""
        return packed_blocks(self.small.detach().half(), self.groups, self.kind, block, design)


def with_operators(net: nn.Module, kind: str) -> nn.Module:
    """The network with an operator in place of each 3x3 convolution that keeps the shape."""
    torch.manual_seed(1)
    for block in net.blocks:
        for name in ("conv1", "conv2"):
            conv = getattr(block, name)
            if conv.stride == (1, 1) and conv.in_channels == conv.out_channels:
                setattr(
                    block, name, OperatorConvolution(kind, conv.in_channels, conv.bias).to(DEVICE)
                )
    return net
