"""A plain convolutional network for images of 8 to 64 pixels."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from syno.models.blocks import ConvNorm, Head, stage_plan


class SmallCnn(nn.Module):
    """Stem, `stages` stages of `layers` convolutions, head; the map is halved by average pooling.

    [N, channels, size, size] -> [N, classes]
    """

    def __init__(
        self, classes: int, channels: int, size: int, *, width: int, layers: int, stages: int
    ) -> None:
        super().__init__()
        self.stem = ConvNorm(channels, width)
        body: list[nn.Module] = []
        inputs = width
        for outputs, halved in stage_plan(width, stages, size):
            if halved:
                body.append(nn.AvgPool2d(2))
            for _ in range(layers):
                body += [ConvNorm(inputs, outputs), nn.ReLU()]
                inputs = outputs
        self.body = nn.Sequential(*body)
        self.head = Head(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, channels, size, size] -> [N, classes]."""
        return self.head(self.body(functional.relu(self.stem(x))))
