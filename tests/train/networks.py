"""A network that the tests of several files train."""

from __future__ import annotations

import torch
from torch import nn


def convolutional(seed: int = 0) -> nn.Module:
    """Runs on images of any size; has dropout and batch statistics, so that all state counts."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 2),
    )
