"""A small residual network for images of 8 to 64 pixels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from syno.network.models.blocks import ConvNorm, SmallNetwork, stage_plan


class ResidualBlock(nn.Module):
    """relu(f(x) + x) with f two 3x3 convolutions: [N, I, H, W] -> [N, O, H', W'].

    A stride-2 layer is 2x2 average pooling followed by a stride-1 convolution (as in the paper's
    experiments), so that an operator which keeps the map's size can take its place. The shortcut is
    a 1x1 convolution where the number of channels changes.
    """

    def __init__(self, inputs: int, outputs: int, halved: bool) -> None:
        super().__init__()
        self.pool = nn.AvgPool2d(2) if halved else nn.Identity()
        self.first = ConvNorm(inputs, outputs)
        self.second = ConvNorm(outputs, outputs)
        self.shortcut = ConvNorm(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, I, H, W] -> [N, O, H', W']."""
        x = self.pool(x)
        y = functional.relu(self.first(x))
        return functional.relu(self.second(y) + self.shortcut(x))


class SmallResNet(SmallNetwork):
    """Stages of residual blocks: `stages` of `blocks` each, or one for each number in `blocks`."""

    def __init__(
        self,
        classes: int,
        channels: int,
        size: int,
        *,
        width: int,
        blocks: int | Sequence[int],
        stages: int = 0,
    ) -> None:
        counts = [blocks] * stages if isinstance(blocks, int) else list(blocks)
        body: list[nn.Module] = []
        inputs = width
        for (outputs, halved), count in zip(
            stage_plan(width, len(counts), size), counts, strict=True
        ):
            for block in range(count):
                body.append(ResidualBlock(inputs, outputs, halved and block == 0))
                inputs = outputs
        super().__init__((channels, size, size), width, nn.Sequential(*body), inputs, classes)
