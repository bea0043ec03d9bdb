"""Tasks: the batches, the loss and the metrics of images (images.py) or text (text.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import nn

from syno._util.inputs import Inputs, Targets


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

    def batches(self, epoch: int, step: int) -> Iterator[tuple[Inputs, Targets, int]]:
        """Iterate over an epoch from `step` on.

        Returns:
            Tuples (inputs, targets, samples of the whole batch). Inputs and targets are the part of
            the batch that this process trains on.
        """

    def loss(self, scores: torch.Tensor, targets: Targets) -> tuple[torch.Tensor, int]:
        """Return the mean loss, and the number of correct predictions."""

    def metrics(self, net: nn.Module) -> Metrics:
        """Measure a network on the validation split.

        Raises:
            NonFiniteScoresError: if a score is NaN or infinite.
        """

    def validation(self, samples: int | None = None) -> Iterator[tuple[Inputs, Targets]]:
        """Iterate over the validation split in a fixed order, in batches (inputs, targets).

        Args:
            samples: how many of the first ones; None for all.
        """

    def probe(self, net: nn.Module) -> None:
        """Check before the training that a network can be trained on this task.

        Raises:
            UserError: if it cannot.
        """


def of_first(parts: Iterable[np.ndarray], samples: int | None) -> Iterator[np.ndarray]:
    """The numbers of the first samples, in the parts that all of them are in; None for all."""
    for part in parts:
        taken = part if samples is None else part[:samples]
        if not len(taken):
            return
        yield taken
        samples = None if samples is None else samples - len(taken)
