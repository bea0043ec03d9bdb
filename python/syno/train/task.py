"""Tasks: the batches, the loss and the metrics of images (images.py) or text (text.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn


class NonFiniteScoresError(RuntimeError):
    """A network returned NaN or infinite scores."""


@dataclass(frozen=True)
class Metrics:
    """Metrics on the validation split: the accuracy from 0 to 1, and for text the mean loss.

    Of custom data, a metric that is maximized is `accuracy`, and one that is minimized `loss`.
    """

    accuracy: float | None
    loss: float | None = None
    bits_a_byte: float | None = None


class TrainingTask(Protocol):
    """Data and objective of one training.

    fingerprint: of the data.
    chance: the loss of a uniform guess.
    epochs: their number; 0 if a time limit ends the training.
    steps: steps of an epoch.
    tokens: tokens of a step; 0 for images.
    """

    fingerprint: str
    chance: float
    epochs: int
    steps: int
    tokens: int

    def batches(self, epoch: int, step: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
        """Iterate over an epoch from `step` on.

        Returns:
            Tuples (inputs, targets, samples of the whole batch). Inputs and targets are the part of
            the batch that this process trains on.
        """

    def loss(self, scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, int]:
        """Return the mean loss, and the number of correct predictions."""

    def metrics(self, net: nn.Module) -> Metrics:
        """Measure a network on the validation split.

        Raises:
            NonFiniteScoresError: if a score is NaN or infinite.
        """

    def validation(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Iterate over the validation split in a fixed order, in batches (inputs, targets)."""

    def probe(self, net: nn.Module) -> None:
        """Check before the training that a network can be trained on this task.

        Raises:
            UserError: if it cannot.
        """
