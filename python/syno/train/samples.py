"""Images of a training beside the training itself: to calibrate on, and to judge by."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from syno._util.errors import UserError
from syno.data import DataSet, Records, Stream
from syno.data.augment import Augmentation, Augmenter
from syno.train.evaluate import accuracy_of
from syno.train.fidelities import Fidelity
from syno.train.images import Part, readers, resized, split_images
from syno.train.numerics import Numerics
from syno.train.recipe import Recipe

_BATCH = 32
# Apart from the streams of epochs, which are numbered from 0.
_STREAM = 1 << 32


def training_images(
    data: DataSet | Records, fidelity: Fidelity, count: int, seed: int
) -> Iterator[torch.Tensor]:
    """`count` images of those that the fidelity trains on, or all where there are fewer.

    Batches [n, C, S, S] as the network sees them, but without augmentation. They are drawn by
    `seed`; no held-out image is read. UserError for a count below 1, and for text.
    """
    if count < 1:
        raise UserError(f"cannot sample {count} training images\n  expected: 1 or more")
    fit, _ = _parts(data, fidelity)
    normalise = _normalisation(data)
    order = np.sort(Stream(seed, _STREAM).permutation(len(fit))[:count])
    assert fidelity.resolution is not None
    for index in np.array_split(order, -(-len(order) // _BATCH)):
        pixels = torch.from_numpy(np.array(fit.fetch(index, 0, 0)))
        yield resized(normalise.plain(pixels), fidelity.resolution)


def validation_accuracy(net: nn.Module, data: DataSet | Records, fidelity: Fidelity) -> float:
    """Share of the held-out images that `net` classifies rightly, on the CPU, as `train` counts it.

    Raises NonFiniteScoresError.
    """
    assert fidelity.resolution is not None
    return accuracy_of(
        net,
        _parts(data, fidelity)[1],
        _normalisation(data).plain,
        resolution=fidelity.resolution,
        flip_average=fidelity.recipe.flip_average,
        numerics=Numerics(Recipe("evaluation"), torch.device("cpu")),
    )


def _parts(data: DataSet | Records, fidelity: Fidelity) -> tuple[Part, Part]:
    """(trained on, held out), to be read as they are."""
    if not isinstance(data, (DataSet, Records)):
        raise UserError(
            f"'{data.name}' is text\n  expected: images, such as cifar10      got: text"
        )
    name = data.name if isinstance(data, DataSet) else str(data.folder)
    fit, held = split_images(np.asarray(data.train.labels), data.classes, name, fidelity)
    _, plain = readers(data, fidelity)
    return Part(plain, fit), Part(plain, held)


def _normalisation(data: DataSet | Records) -> Augmenter:
    return Augmenter(Augmentation(), data.mean, data.std, 0)
