"""Data sets of images: two splits of uint8 images with labels, and the names of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from syno._util.errors import UserError
from syno.data.random import Stream


@dataclass(frozen=True, eq=False)
class Split:
    """Images uint8 [N, C, H, W] (maybe memory-mapped) and labels int64 [N], in a fixed order."""

    images: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, index: np.ndarray) -> Split:
        """Copy the images of `index` (int64 [M]) into memory, in that order."""
        return Split(np.ascontiguousarray(self.images[index]), np.asarray(self.labels[index]))

    def fetch(self, index: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """Return the images of `index`, uint8 [n, C, H, W], for `ImageBatches`."""
        del seed, epoch
        return self.images[index]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Training and test images of one size, with the statistics that normalize them.

    mean, std: of each channel of the training split, in units of pixel value / 255.
    fingerprint: a digest (32 hexadecimal digits) of the content and of how it was decoded.
    skipped: the number of files that are not images and were omitted.
    """

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    fingerprint: str
    skipped: int = 0

    @property
    def channels(self) -> int:
        """1 for gray, 3 for RGB."""
        return int(self.train.images.shape[1])

    @property
    def size(self) -> int:
        """Height and width of every image, in pixels."""
        return int(self.train.images.shape[2])

    def validation_indices(self, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Divide the training images as `validation_split` does.

        Returns:
            The indices of the training and the validation images, int64, ascending.
        """
        if not 0.0 < fraction < 1.0:
            raise UserError(
                f"cannot hold out a fraction of {fraction} of '{self.name}'\n"
                "  expected: a fraction between 0 and 1, such as 0.1"
            )
        labels = np.asarray(self.train.labels)
        counts = np.bincount(labels, minlength=len(self.classes))
        for name, count in zip(self.classes, counts, strict=True):
            if count < 2:
                raise UserError(
                    f"cannot hold out images of class '{name}' of '{self.name}'\n"
                    f"  expected: at least 2 training images a class      got: {count}"
                )
        total = min(max(round(fraction * len(labels)), 1), len(labels) - 1)
        shares = np.clip(apportion(counts, total), 1, counts - 1)
        validation = stratified(labels, shares, seed)
        return np.setdiff1d(np.arange(len(labels)), validation), validation

    def validation_split(self, fraction: float, seed: int) -> tuple[Split, Split]:
        """Divide the training images into a training and a validation split, stratified by class.

        The test split is not read.

        Args:
            fraction: the share of the images in the validation split, between 0 and 1.
            seed: the same seed selects the same images.

        Returns:
            The training and the validation split.

        Raises:
            UserError: for a fraction that is not between 0 and 1, and for a class with one image.
        """
        training, validation = self.validation_indices(fraction, seed)
        return self.train.take(training), self.train.take(validation)


def apportion(counts: np.ndarray, total: int) -> np.ndarray:
    """Divide `total` among classes in proportion to `counts`, by largest remainders.

    Returns:
        int64 [classes] with the sum `total`, at most `counts` if `total` is at most their sum. The
        first of equal remainders is rounded up.
    """
    exact = counts * (total / max(int(counts.sum()), 1))
    shares = np.floor(exact).astype(np.int64)
    order = np.argsort(shares - exact, kind="stable")
    shares[order[: total - int(shares.sum())]] += 1
    return shares


def stratified(labels: np.ndarray, shares: Sequence[int] | np.ndarray, seed: int) -> np.ndarray:
    """Sample shares[c] indices of each class c, int64, ascending.

    Each class has its own random stream, so a change in one class does not affect the others.
    """
    parts = []
    for label, share in enumerate(shares):
        members = np.flatnonzero(labels == label)
        parts.append(members[Stream(seed, label).permutation(len(members))[:share]])
    return np.sort(np.concatenate(parts))


def statistics(images: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Compute mean and standard deviation of each channel of uint8 [N, C, H, W], divided by 255.

    Sums are integers, so the result does not depend on the block size. The deviation is at least
    1 / 255, so that dividing by it is safe.
    """
    channels = images.shape[1]
    total = np.zeros(channels, dtype=np.uint64)
    squares = np.zeros(channels, dtype=np.uint64)
    block = max(1, (1 << 24) // int(np.prod(images.shape[1:])))
    for start in range(0, len(images), block):
        part = images[start : start + block].astype(np.uint32)
        total += part.sum(axis=(0, 2, 3), dtype=np.uint64)
        squares += (part * part).sum(axis=(0, 2, 3), dtype=np.uint64)
    count = images.size // channels
    mean = total / count
    deviation = np.sqrt(np.maximum(squares / count - mean * mean, 0.0))
    return (
        tuple(float(value) / 255 for value in mean),
        tuple(max(float(value), 1.0) / 255 for value in deviation),
    )
