"""Batches of augmented images, made ahead by worker threads; the same for any number of them.

Imported on its own, since it needs torch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Protocol

import numpy as np
import torch

from syno._util.errors import UserError
from syno.data.augment import Augmenter
from syno.data.random import Stream


class Reader(Protocol):
    """Images that can be fetched by their numbers: a `Split`, or a part of `Records`."""

    @property
    def labels(self) -> np.ndarray:
        """int64 [N]."""

    def fetch(self, index: np.ndarray, seed: int, epoch: int) -> np.ndarray:
        """uint8 [n, C, H, W] of the images `index`; (seed, epoch) for readers that draw."""


class ImageBatches:
    """Epochs of shuffled and augmented batches.

    reader: the images; batch: images in one, at most; device: where the result lies and is
    augmented; workers: threads that fetch (and on the CPU augment) ahead; 0 does it in between.
    part: which places of a batch of so many images are read here, where several processes divide
    it; default: all.
    """

    def __init__(
        self,
        reader: Reader,
        augment: Augmenter,
        *,
        batch: int,
        seed: int,
        device: str | torch.device = "cpu",
        workers: int = 0,
        ahead: int = 2,
        part: Callable[[int], slice] = lambda count: slice(0, count),
    ) -> None:
        count = len(reader.labels)
        if not 1 <= batch <= count:
            raise UserError(
                f"cannot make batches of {batch} of {count} images\n  expected: a batch of 1 to "
                f"{count}      got: {batch}"
            )
        if workers < 0:
            raise UserError(f"cannot make batches with {workers} workers\n  expected: 0 or more")
        self._reader, self._augment, self._seed = reader, augment, seed
        self._device = torch.device(device)
        self._workers, self._ahead, self._part = workers, ahead, part
        self.steps = -(-count // batch)

    def size(self, step: int) -> int:
        """Images of the batch of that step, whatever part of it is read here."""
        count = len(self._reader.labels)
        return count // self.steps + int(step < count % self.steps)

    def epoch(self, number: int, step: int = 0) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Images [n, C, S, S'] and labels int64 [n], from `step` on; every image once an epoch, in
        batches of sizes that differ by one at most."""
        order = Stream(self._seed, number).permutation(len(self._reader.labels))
        whole = np.array_split(order, self.steps)[step:]
        parts = [index[self._part(len(index))] for index in whole]
        if not self._workers:
            for index in parts:
                yield self._finished(index, number, self._made(index, number))
            return
        waiting: deque[tuple[np.ndarray, Future[torch.Tensor]]] = deque()
        todo = iter(parts)
        with ThreadPoolExecutor(self._workers) as pool:
            try:
                while True:
                    room = self._workers * self._ahead - len(waiting)
                    for index in islice(todo, room):
                        waiting.append((index, pool.submit(self._made, index, number)))
                    if not waiting:
                        return
                    index, made = waiting.popleft()
                    yield self._finished(index, number, made.result())
            finally:
                for _, made in waiting:
                    made.cancel()

    def _made(self, index: np.ndarray, epoch: int) -> torch.Tensor:
        """What a worker does: fetch, and on the CPU augment."""
        pixels = self._reader.fetch(index, self._seed, epoch)
        images = torch.from_numpy(np.ascontiguousarray(pixels))
        if self._device.type == "cpu":
            return self._augment(images, index, epoch)
        return images

    def _finished(
        self, index: np.ndarray, epoch: int, images: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.from_numpy(np.asarray(self._reader.labels)[index])
        if self._device.type != "cpu":
            images = self._augment(images.to(self._device), index, epoch)
            labels = labels.to(self._device)
        return images, labels
