"""Layers that the small networks share."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

# A map of this size is not halved again: below 4 an operator's window no longer fits (the paper
# keeps the original layer there), so an 8 px image still offers slots in the last stage.
SMALLEST_MAP = 4


class ConvNorm(nn.Sequential):
    """Convolution that keeps the map's size, then batch normalisation.

    [N, inputs, H, W] -> [N, outputs, H, W]
    """

    def __init__(self, inputs: int, outputs: int, kernel: int = 3) -> None:
        convolution = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False)
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
        super().__init__(convolution, nn.BatchNorm2d(outputs))


class SmallNetwork(nn.Module):
    """Stem, body, mean over the map, linear head: [N, channels, size, size] -> [N, classes].

    `input_shape` is (channels, size, size). The stem, a convolution to `width` channels, stays as
    it is; the body, from `width` to `outputs` channels, holds what operators may replace.
    """

    def __init__(
        self,
        input_shape: tuple[int, int, int],
        width: int,
        body: nn.Module,
        outputs: int,
        classes: int,
    ) -> None:
        super().__init__()
        self.input_shape = input_shape
        self.stem = ConvNorm(input_shape[0], width)
        self.body = body
        self.head = nn.Linear(outputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[N, channels, size, size] -> [N, classes]."""
        return self.head(self.body(functional.relu(self.stem(x))).mean(dim=(2, 3)))


def stage_plan(width: int, stages: int, size: int) -> list[tuple[int, bool]]:
    """(channels, whether the map is halved first) of each stage; the first is never halved.

    An odd map loses its last row and column when halved.
    """
    plan = [(width, False)]
    for stage in range(1, stages):
        halved = size // 2 >= SMALLEST_MAP
        size = size // 2 if halved else size
        plan.append((width << stage, halved))
    return plan
