"""Accuracy of a network on images, and its test quality on text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from syno.data import DataSet, Split, TextData
from syno.data.augment import Augmentation, Augmenter
from syno.data.batches import Reader
from syno.train.numerics import Numerics
from syno.train.recipe import Recipe
from syno.train.task import Metrics, NonFiniteScoresError
from syno.train.text import text_metrics

_BATCH = 256


def accuracy(
    net: nn.Module,
    split: Split,
    dataset: DataSet,
    *,
    resolution: int | None = None,
    flip_average: bool = False,
) -> float:
    """Share of the images of `split` that `net` classifies rightly, 0 to 1.

    Images are normalized by the statistics of `dataset`, and scaled to `resolution` pixels where
    that is given; flip_average averages the scores of an image and its mirror image. The network
    runs in evaluation mode on the device of its weights, and gets its mode back. Raises
    NonFiniteScoresError.
    """
    first = next(net.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    return accuracy_of(
        net,
        split,
        Augmenter(Augmentation(), dataset.mean, dataset.std, 0).plain,
        resolution=resolution or dataset.size,
        flip_average=flip_average,
        numerics=Numerics(Recipe("evaluation"), device),
    )


def test_accuracy(
    net: nn.Module,
    dataset: DataSet,
    *,
    resolution: int | None = None,
    flip_average: bool = False,
) -> float:
    """Accuracy on the test split, 0 to 1: for the report, never to choose by."""
    return accuracy(net, dataset.test, dataset, resolution=resolution, flip_average=flip_average)


def test_metrics(net: nn.Module, data: TextData, *, context: int, batch: int) -> Metrics:
    """Loss, accuracy and bits a byte on the test part of a text: for the report, never to choose
    by. UserError for a text without one, or with one that is shorter than a context."""
    first = next(net.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    numerics = Numerics(Recipe("evaluation"), device)
    return text_metrics(net, data, "test", context=context, batch=batch, numerics=numerics)


test_metrics.__test__ = False  # type: ignore[attr-defined]
test_accuracy.__test__ = False  # type: ignore[attr-defined]  # not a case for pytest


def accuracy_of(
    net: nn.Module,
    images: Reader,
    normalize: Callable[[torch.Tensor], torch.Tensor],
    *,
    resolution: int,
    flip_average: bool,
    numerics: Numerics,
) -> float:
    """As `accuracy`, of the images of a reader."""
    training = net.training
    net.eval()
    try:
        right, count = 0, len(images.labels)
        with torch.inference_mode():
            for start in range(0, count, _BATCH):
                index = np.arange(start, min(start + _BATCH, count))
                pixels = torch.from_numpy(np.array(images.fetch(index, 0, 0)))
                inputs = normalize(pixels.to(numerics.device))
                if inputs.shape[2:] != (resolution, resolution):
                    size = (resolution, resolution)
                    inputs = functional.interpolate(inputs, size, mode="bilinear", antialias=True)
                scores = _scores(net, numerics.inputs(inputs), flip_average, numerics)
                labels = torch.from_numpy(np.array(images.labels[index])).to(numerics.device)
                right += int((scores.argmax(dim=1) == labels).sum())
    finally:
        net.train(training)
    return right / count


def _scores(
    net: nn.Module, inputs: torch.Tensor, flip_average: bool, numerics: Numerics
) -> torch.Tensor:
    with numerics.autocast():
        scores = net(inputs)
        if flip_average:
            scores = scores + net(numerics.inputs(inputs.flip(3)))
    if not torch.isfinite(scores).all():
        raise NonFiniteScoresError("the network gives scores that are not finite")
    return scores
