"""Accuracy of a network on a split."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from syno.data import DataSet, Split
from syno.train.batches import Normaliser

_BATCH = 256


class NonFiniteScoresError(RuntimeError):
    """A network gave NaN or infinite scores."""


def accuracy(net: nn.Module, split: Split, dataset: DataSet) -> float:
    """Share of the images of `split` that `net` classifies rightly, 0 to 1.

    Images are normalised by the statistics of `dataset`. The network runs in evaluation mode and
    gets its mode back. Raises NonFiniteScoresError.
    """
    normalise = Normaliser(dataset)
    training = net.training
    net.eval()
    try:
        right = 0
        with torch.inference_mode():
            for start in range(0, len(split), _BATCH):
                images = np.array(split.images[start : start + _BATCH])
                labels = torch.from_numpy(np.array(split.labels[start : start + _BATCH]))
                scores = net(normalise(images))
                if not torch.isfinite(scores).all():
                    raise NonFiniteScoresError("the network gives scores that are not finite")
                right += int((scores.argmax(dim=1) == labels).sum())
    finally:
        net.train(training)
    return right / len(split)


def test_accuracy(net: nn.Module, dataset: DataSet) -> float:
    """Accuracy on the test split, 0 to 1: for the report, never to choose by."""
    return accuracy(net, dataset.test, dataset)


test_accuracy.__test__ = False  # type: ignore[attr-defined]  # not a case for pytest
