"""Data-parallel training by several processes, which `torchrun` starts.

Each process trains on a part of every batch, so that the batch size does not depend on the number
of processes. DistributedDataParallel of torch averages the gradients.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import distributed, nn

_T = TypeVar("_T")


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of a training: this one is `rank` of `world`."""

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    @staticmethod
    def current() -> ProcessGroup:
        """Return the group that this process joined, or a group of one process."""
        if distributed.is_available() and distributed.is_initialized():
            return ProcessGroup(distributed.get_rank(), distributed.get_world_size())
        return ProcessGroup()

    def part(self, count: int) -> slice:
        """Return which samples of a batch of `count` this process trains on."""
        edges = [count * rank // self.world for rank in (self.rank, self.rank + 1)]
        return slice(*edges)

    def wrapped(self, net: nn.Module, device: torch.device) -> nn.Module:
        """Wrap a network so that its gradients are averaged over the processes."""
        if self.world == 1:
            return net
        own = [device] if device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(net, device_ids=own)

    def summed(self, *values: float, device: torch.device) -> list[float]:
        """Sum values over all processes."""
        if self.world == 1:
            return list(values)
        together = torch.tensor(values, dtype=torch.float64, device=device)
        distributed.all_reduce(together)
        return [float(value) for value in together]

    def broadcast(self, value: _T) -> _T:
        """Return the value of the first process in every process."""
        if self.world == 1:
            return value
        box: list[_T] = [value]
        distributed.broadcast_object_list(box, src=0)
        return box[0]


@contextmanager
def joined(device: str = "cpu") -> Iterator[ProcessGroup]:
    """Join the processes that torchrun started (environment variable WORLD_SIZE)."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ProcessGroup()
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield ProcessGroup.current()
    finally:
        distributed.destroy_process_group()
