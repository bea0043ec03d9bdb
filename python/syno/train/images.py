"""Training on images: a `DataSet`, or `Records`."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from syno._util.errors import UserError, first_line
from syno.data import DataSet, Records, Split
from syno.data.augment import Augmentation, Augmenter
from syno.data.batches import ImageBatches, Reader
from syno.data.dataset import apportion, stratified
from syno.data.records import RecordSplit
from syno.train.evaluate import accuracy_of
from syno.train.fidelities import Fidelity
from syno.train.numerics import Numerics
from syno.train.parallel import ProcessGroup
from syno.train.recipe import Recipe
from syno.train.task import Metrics, of_first

# Images of a batch of the validation split.
_BATCH = 256


class ImageSubset:
    """Some images of a reader, by their numbers there."""

    def __init__(self, whole: Reader, index: np.ndarray) -> None:
        self._whole, self._index = whole, index
        self.labels = np.asarray(whole.labels)[index]

    def __len__(self) -> int:
        return len(self._index)

    def fetch(self, index: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """uint8 [n, C, H, W]."""
        return self._whole.fetch(self._index[index], seed, epoch)


class ImageTask:
    """Augmented batches of the training images, and the accuracy on the validation split.

    The validation split depends on `holdout` and `split_seed` of the fidelity only.
    """

    tokens = 0

    def __init__(
        self,
        data: DataSet | Records,
        fidelity: Fidelity,
        seed: int,
        numerics: Numerics,
        group: ProcessGroup,
        workers: int = 0,
    ) -> None:
        recipe = fidelity.recipe
        assert fidelity.resolution is not None and fidelity.epochs is not None
        self.name = data.name if isinstance(data, DataSet) else str(data.folder)
        self.fingerprint = data.fingerprint
        self.classes = len(data.classes)
        self.chance = math.log(self.classes)
        self.epochs = fidelity.epochs
        self._recipe, self._numerics = recipe, numerics
        self._resolution = fidelity.resolution
        self._channels = data.channels
        labels = np.asarray(data.train.labels)
        fit, validation = split_images(labels, data.classes, self.name, fidelity)
        train, plain = readers(data, fidelity)
        self._fit, self._validation = ImageSubset(train, fit), ImageSubset(plain, validation)
        if recipe.batch > len(self._fit):
            raise UserError(
                f"recipe '{recipe.name}' takes batches of {recipe.batch}, and '{self.name}' "
                f"has {len(self._fit)} training images\n"
                f"  expected: a batch of at most {len(self._fit)}"
            )
        if group.world > recipe.batch // 2:
            raise UserError(
                f"batches of {recipe.batch} cannot be divided among {group.world} processes\n"
                f"  expected: at most {recipe.batch // 2} processes, two images each"
            )
        self._augment = Augmenter(_augmentation(recipe, data), data.mean, data.std, seed)
        self._batches = ImageBatches(
            self._fit,
            self._augment,
            batch=recipe.batch,
            seed=seed,
            device=numerics.device,
            workers=workers,
            part=group.part,
        )
        self.steps = self._batches.steps

    def batches(self, epoch: int, step: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
        """See Task. Every image comes once in an epoch. Batch sizes differ by one at most, so that
        no batch is too small for batch normalization."""
        size = self.resolution(epoch)
        for place, (images, labels) in enumerate(self._batches.epoch(epoch, step), step):
            yield resized(images, size), labels, self._batches.size(place)

    def resolution(self, epoch: int) -> int:
        """Return the height and width of images in this epoch, in pixels."""
        share = 1.0
        for start, of_it in self._recipe.progressive:
            if epoch >= start * self.epochs:
                share = of_it
        return max(round(self._resolution * share), 1)

    def loss(self, scores: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, int]:
        """See Task. Raises a UserError for scores of another shape."""
        if scores.shape != (len(targets), self.classes):
            raise UserError(
                f"the network gives scores of shape {list(scores.shape)}\n"
                f"  expected: [{len(targets)}, {self.classes}], one score for each "
                f"class of '{self.name}'"
            )
        loss = functional.cross_entropy(
            scores.float(), targets, label_smoothing=self._recipe.label_smoothing
        )
        return loss, int((scores.argmax(dim=1) == targets).sum())

    def metrics(self, net: nn.Module) -> Metrics:
        """See Task."""
        return Metrics(
            accuracy_of(
                net,
                self._validation,
                self._augment.plain,
                resolution=self._resolution,
                flip_average=self._recipe.flip_average,
                numerics=self._numerics,
            )
        )

    def validation(self, samples: int | None = None) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """See Task."""
        count = len(self._validation)
        for index in of_first(np.array_split(np.arange(count), -(-count // _BATCH)), samples):
            pixels = torch.from_numpy(np.array(self._validation.fetch(index, 0, 0)))
            labels = torch.from_numpy(np.array(self._validation.labels[index]))
            inputs = self._augment.plain(pixels.to(self._numerics.device))
            yield resized(inputs, self._resolution), labels.to(self._numerics.device)

    def probe(self, net: nn.Module) -> None:
        """See Task. A progressive recipe needs a network that runs at all resolutions."""
        sizes = sorted({self.resolution(epoch) for epoch in range(self.epochs)})
        if len(sizes) < 2:
            return
        training = net.training
        net.eval()
        try:
            for size in sizes:
                images = torch.zeros(2, self._channels, size, size)
                with torch.no_grad(), self._numerics.autocast():
                    net(self._numerics.inputs(images))
        except (RuntimeError, ValueError, UserError) as error:
            raise UserError(
                f"the network does not run on images of {size} px, which recipe "
                f"'{self._recipe.name}' uses in a part of the training\n  {first_line(error)}\n"
                "  expected: a recipe without `progressive`, or a network for images of any size"
            ) from error
        finally:
            net.train(training)


def resized(images: torch.Tensor, size: int) -> torch.Tensor:
    """Scale images [n, C, H, W] to [n, C, size, size], bilinear with antialiasing."""
    if images.shape[2:] == (size, size):
        return images
    return functional.interpolate(images, (size, size), mode="bilinear", antialias=True)


def split_images(
    labels: np.ndarray, classes: tuple[str, ...], name: str, fidelity: Fidelity
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the training and the validation images, int64, ascending."""
    # The split depends on labels and classes only, so that of records is the same.
    bare = DataSet(name, Split(labels, labels), Split(labels, labels), classes, (), (), "")
    fit, validation = bare.validation_indices(fidelity.holdout, fidelity.split_seed)
    if fidelity.images is None:
        return fit, validation
    if fidelity.images > len(fit):
        raise UserError(
            f"fidelity '{fidelity.name}' requests {fidelity.images} training images\n"
            f"  expected: at most {len(fit)}, those of '{name}'; {len(validation)} more form the "
            "validation split"
        )
    counts = np.bincount(labels[fit], minlength=len(classes))
    shares = apportion(counts, fidelity.images)
    return fit[stratified(labels[fit], shares, fidelity.split_seed)], validation


def readers(data: DataSet | Records, fidelity: Fidelity) -> tuple[Reader, Reader]:
    """Return readers of the training images, for training and for evaluation."""
    size = fidelity.loaded_at
    assert size is not None
    if isinstance(data, Records):
        split: RecordSplit = data.train
        return split.view(size, fidelity.recipe.area), split.view(size)
    if data.size != size:
        raise UserError(
            f"fidelity '{fidelity.name}' trains at {size} pixels, "
            f"'{data.name}' is loaded at {data.size}\n"
            f"  load it with size={size}"
        )
    return data.train, data.train


def _augmentation(recipe: Recipe, data: DataSet | Records) -> Augmentation:
    """Return the augmentation of a recipe. Records select the random area while decoding."""
    return Augmentation(
        crop=recipe.crop,
        pad=recipe.pad,
        flip=recipe.flip,
        cutout=recipe.cutout,
        area=None if isinstance(data, Records) else recipe.area,
    )
