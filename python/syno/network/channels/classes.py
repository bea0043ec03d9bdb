"""Classes of channels: what has to go together, as a union-find over numbered channels."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


class Classes:
    """Channels 0, 1, ..., each in a class with those that can only be removed together with it.

    A class may be kept: nothing of it can be removed.
    """

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._kept: list[bool] = []

    def new(self, count: int) -> Ids:
        """Further channels, each in a class of its own."""
        first = len(self._parent)
        self._parent.extend(range(first, first + count))
        self._kept.extend([False] * count)
        return np.arange(first, first + count)

    def of(self, channel: int) -> int:
        """A channel that stands for the class."""
        root = channel
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[channel] != root:  # shorter for the next time
            self._parent[channel], channel = root, self._parent[channel]
        return root

    def join(self, some: Ids, others: Ids) -> None:
        """Makes one class of each channel of `some` and that of `others` at the same place."""
        for one, other in zip(some.tolist(), others.tolist(), strict=True):
            a, b = self.of(one), self.of(other)
            if a != b:
                self._parent[b] = a
                self._kept[a] = self._kept[a] or self._kept[b]

    def keep(self, dims: Iterable[Ids | None]) -> None:
        """Nothing of the classes of the channels of these dimensions is removed."""
        for channels in dims:
            for channel in set() if channels is None else set(channels.tolist()):
                self._kept[self.of(channel)] = True

    def is_kept(self, channel: int) -> bool:
        """Whether the class of the channel stays."""
        return self._kept[self.of(channel)]
