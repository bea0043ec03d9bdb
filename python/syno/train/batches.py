"""Batches from uint8 arrays, augmented with array operations instead of image by image."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from syno.data import DataSet, Split, Stream


class Normaliser:
    """uint8 [n, C, H, W] arrays to float32 tensors of zero mean and unit variance a channel."""

    def __init__(self, dataset: DataSet) -> None:
        mean = torch.tensor(dataset.mean).view(1, -1, 1, 1)
        std = torch.tensor(dataset.std).view(1, -1, 1, 1)
        self._scale = 1 / (255 * std)
        self._shift = -mean / std

    def __call__(self, images: np.ndarray) -> torch.Tensor:
        """[n, C, H, W] to the same shape."""
        return torch.from_numpy(images).float().mul_(self._scale).add_(self._shift)


class TrainingBatches:
    """Shuffled, shifted and mirrored batches of a split; the same for the same seed."""

    def __init__(
        self, split: Split, dataset: DataSet, *, batch: int, crop: int, flip: bool, seed: int
    ) -> None:
        self._split = split
        self._normalise = Normaliser(dataset)
        self._crop = crop
        self._flip = flip
        self._seed = seed
        self.steps = -(-len(split) // batch)
        # The mean colour is 0 after normalisation, so a shifted-in border adds no edge of its own.
        self._padded = np.empty(
            (*split.images.shape[:2], dataset.size + 2 * crop, dataset.size + 2 * crop), np.uint8
        )
        self._padded[:] = np.round(np.array(dataset.mean) * 255).reshape(1, -1, 1, 1)
        inside = slice(crop, crop + dataset.size)
        self._padded[:, :, inside, inside] = split.images

    def epoch(self, number: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Images float32 [n, C, H, W] and labels int64 [n]; every image once, in batches of sizes
        that differ by one at most, so that no batch is too small to normalise over."""
        stream = Stream(self._seed, number)
        order = stream.permutation(len(self._split))
        for index in np.array_split(order, self.steps):
            images = self._augmented(index, stream)
            yield self._normalise(images), torch.from_numpy(self._split.labels[index])

    def _augmented(self, index: np.ndarray, stream: Stream) -> np.ndarray:
        count, size = len(index), self._split.images.shape[2]
        if not (self._crop or self._flip):
            return self._split.images[index]
        rows = np.arange(size) + stream.below(2 * self._crop + 1, count)[:, None]  # [n, H]
        columns = np.arange(size) + stream.below(2 * self._crop + 1, count)[:, None]  # [n, W]
        if self._flip:
            mirrored = stream.below(2, count).astype(bool)
            columns[mirrored] = columns[mirrored, ::-1]
        # Advanced indices around a slice put the channels last: [n, H, W, C].
        picked = self._padded[index[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return np.ascontiguousarray(np.moveaxis(picked, 3, 1))
