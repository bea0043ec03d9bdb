"""A data set as a value: two splits of uint8 images with labels, and the names of the classes."""

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
        """The chosen images, copied into memory, in the order of `index` (int64 [M])."""
        return Split(np.ascontiguousarray(self.images[index]), np.asarray(self.labels[index]))

    def fetch(self, index: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """The chosen images, uint8 [n, C, H, W], for `ImageBatches`; nothing is drawn."""
        del seed, epoch
        return self.images[index]


@dataclass(frozen=True, eq=False)
class DataSet:
    """Training and test images of one size, with what is needed to normalise them.

    `mean` and `std` have one entry a channel, in units of pixel value / 255, and come from the
    training split alone. `fingerprint` (32 hex) names the content and how it was decoded.
    `skipped` counts files that were no images and were left out.
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
        """1 for grey, 3 for RGB."""
        return int(self.train.images.shape[1])

    @property
    def size(self) -> int:
        """Height and width of every image, in pixels."""
        return int(self.train.images.shape[2])

    def validation_indices(self, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Where in the training split the two parts of `holdout` lie: int64 arrays, ascending."""
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
        held = stratified(labels, shares, seed)
        return np.setdiff1d(np.arange(len(labels)), held), held

    def validation_split(self, fraction: float, seed: int) -> tuple[Split, Split]:
        """Splits the training part into (fit, held out): each class in proportion, same seed same
        images. The test split is not touched.

        Raises UserError for a fraction outside (0, 1) and for a class with a single image.
        """
        fit, held = self.validation_indices(fraction, seed)
        return self.train.take(fit), self.train.take(held)


def apportion(counts: np.ndarray, total: int) -> np.ndarray:
    """Divides `total` among classes in proportion to `counts` (largest remainders, ties to the
    earlier class): int64, sums to `total`, never above `counts` for total <= sum."""
    exact = counts * (total / max(int(counts.sum()), 1))
    shares = np.floor(exact).astype(np.int64)
    order = np.argsort(shares - exact, kind="stable")
    shares[order[: total - int(shares.sum())]] += 1
    return shares


def stratified(labels: np.ndarray, shares: Sequence[int] | np.ndarray, seed: int) -> np.ndarray:
    """Draws shares[c] positions of each class c; int64, ascending.

    Each class has its own stream, so a change in one class leaves the others' draw as it was.
    """
    parts = []
    for label, share in enumerate(shares):
        members = np.flatnonzero(labels == label)
        parts.append(members[Stream(seed, label).permutation(len(members))[:share]])
    return np.sort(np.concatenate(parts))


def statistics(images: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each channel of uint8 [N, C, H, W], in units of 255.

    Sums are integers, so the result does not depend on block size. A constant channel gets one grey
    step as its deviation, so that dividing by it is safe.
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
