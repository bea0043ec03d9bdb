"""The images of a training for other purposes: calibration and evaluation."""

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
from syno.train.images import ImageSubset, readers, resized, split_images
from syno.train.numerics import Numerics
from syno.train.recipe import Recipe

_BATCH = 32
# Apart from the streams of epochs, which are numbered from 0.
_STREAM = 1 << 32


def training_images(
    data: DataSet | Records, fidelity: Fidelity, count: int, seed: int
) -> Iterator[torch.Tensor]:
    """Sample images that a fidelity trains on, without augmentation.

    No image of the validation split is read.

    Args:
        data: the images.
        fidelity: it selects the training images and their resolution S.
        count: the number of images; all training images if there are fewer.
        seed: selects the images.

    Returns:
        Batches [n, C, S, S], as the network sees them.

    Raises:
        UserError: for a count below 1, and for text.
    """
    if count < 1:
        raise UserError(f"cannot sample {count} training images\n  expected: 1 or more")
    fit, _ = _parts(data, fidelity)
    normalize = _normalization(data)
    order = np.sort(Stream(seed, _STREAM).permutation(len(fit))[:count])
    assert fidelity.resolution is not None
    for index in np.array_split(order, -(-len(order) // _BATCH)):
        pixels = torch.from_numpy(np.array(fit.fetch(index, 0, 0)))
        yield resized(normalize.plain(pixels), fidelity.resolution)


def validation_images(
    data: DataSet | Records, fidelity: Fidelity, count: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The first images of the validation split, as the network sees them, and their classes.

    Args:
        data: the images.
        fidelity: it selects the validation images and their resolution S.
        count: the number of images; all of the split if there are fewer.

    Returns:
        [n, C, S, S] and [n].

    Raises:
        UserError: for text.
    """
    _, validation = _parts(data, fidelity)
    normalize = _normalization(data)
    assert fidelity.resolution is not None
    index = np.arange(min(count, len(validation)))
    pixels = torch.from_numpy(np.array(validation.fetch(index, 0, 0)))
    labels = torch.from_numpy(np.asarray(validation.labels)[index])
    return resized(normalize.plain(pixels), fidelity.resolution), labels


def validation_accuracy(net: nn.Module, data: DataSet | Records, fidelity: Fidelity) -> float:
    """Measure the accuracy of a network on the validation split, on the CPU, as `train` does.

    Returns:
        The accuracy, from 0 to 1.

    Raises:
        NonFiniteScoresError: if a score is NaN or infinite.
    """
    assert fidelity.resolution is not None
    return accuracy_of(
        net,
        _parts(data, fidelity)[1],
        _normalization(data).plain,
        resolution=fidelity.resolution,
        flip_average=fidelity.recipe.flip_average,
        numerics=Numerics(Recipe("evaluation"), torch.device("cpu")),
    )


def _parts(data: DataSet | Records, fidelity: Fidelity) -> tuple[ImageSubset, ImageSubset]:
    """Return the training and the validation images, without augmentation."""
    if not isinstance(data, (DataSet, Records)):
        raise UserError(
            f"'{data.name}' is text\n  expected: images, such as cifar10      got: text"
        )
    name = data.name if isinstance(data, DataSet) else str(data.folder)
    fit, validation = split_images(np.asarray(data.train.labels), data.classes, name, fidelity)
    _, plain = readers(data, fidelity)
    return ImageSubset(plain, fit), ImageSubset(plain, validation)


def _normalization(data: DataSet | Records) -> Augmenter:
    return Augmenter(Augmentation(), data.mean, data.std, 0)
