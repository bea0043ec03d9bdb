"""A plain convolutional network for images of 8 to 64 pixels."""

from __future__ import annotations

from torch import nn

from syno.network.models.blocks import ConvNorm, SmallNetwork, stage_plan


class SmallCnn(SmallNetwork):
    """`stages` stages of `layers` convolutions; the map is halved by average pooling."""

    def __init__(
        self, classes: int, channels: int, size: int, *, width: int, layers: int, stages: int
    ) -> None:
        body: list[nn.Module] = []
        inputs = width
        for outputs, halved in stage_plan(width, stages, size):
            if halved:
                body.append(nn.AvgPool2d(2))
            for _ in range(layers):
                body += [ConvNorm(inputs, outputs), nn.ReLU()]
                inputs = outputs
        super().__init__((channels, size, size), width, nn.Sequential(*body), inputs, classes)
