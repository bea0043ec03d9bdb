"""What the supervisor of workers asks of a cluster; `ray_cluster.py` is the one of Ray.

Workers and supervisor exchange nothing but text in JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from syno.launch.room import Demand, Node


class LostWorkerError(Exception):
    """A worker of a cluster is gone, with its process or its node; the text says how.

    Args:
        reason: how it was lost.
        is_final: False if it may only be out of reach for a while.
        with_node: whether its node is gone, too.
    """

    def __init__(self, reason: str, *, is_final: bool = True, with_node: bool = False) -> None:
        super().__init__(reason)
        self.is_final, self.with_node = is_final, with_node


class PendingCall(Protocol):
    """A call of a method of a worker, which may not have returned yet."""

    def answer(self) -> str | None:
        """Return what the method returned, None if it has not returned yet.

        Raises:
            LostWorkerError: if the worker is gone.
        """


class Actor(Protocol):
    """A worker on some node: an object of `RayWorker`, from a distance."""

    def call(self, method: str, *given: str) -> PendingCall:
        """Begin the call of a method."""

    def kill(self) -> None:
        """End it at once. Nothing happens if it is gone."""


class Cluster(Protocol):
    """Nodes, on which workers are placed."""

    def nodes(self) -> Sequence[Node]:
        """List the nodes that are there."""

    def free(self, resource: str) -> float:
        """Return how much of a resource nobody uses."""

    def start(self, demand: Demand) -> Actor:
        """Start a worker on a node with room for it; it waits until there is one."""

    def close(self) -> None:
        """End everything that was started."""
