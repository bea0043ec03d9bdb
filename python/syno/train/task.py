"""What is trained on: batches, a loss, and a quality, of images (images.py) or text (text.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import nn


class NonFiniteScoresError(RuntimeError):
    """A network gave NaN or infinite scores."""


@dataclass(frozen=True)
class Metrics:
    """What was measured on the hold-out part: accuracy (0 to 1), and the mean loss of text."""

    accuracy: float
    loss: float | None = None
    bits_a_byte: float | None = None


class Task(Protocol):
    """Data and objective of one training.

    fingerprint: of the data.    chance: the loss of a uniform guess.    epochs: how many; 0 where a
    time limit ends the training.    steps: of an epoch.    tokens: of a step, 0 for images.
    """

    fingerprint: str
    chance: float
    epochs: int
    steps: int
    tokens: int

    def batches(self, epoch: int, step: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
        """(inputs, targets, samples of the whole batch) from `step` of an epoch on. What this
        process takes of a batch may be less than the whole."""

    def loss(self, scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, int]:
        """The mean loss, and how many targets have the greatest score."""

    def metrics(self, net: nn.Module) -> Metrics:
        """On the hold-out part. Raises NonFiniteScoresError."""

    def probe(self, net: nn.Module) -> None:
        """UserError where the network cannot be trained on this, before anything is."""
