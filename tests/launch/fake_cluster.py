"""A cluster without machines: what `syno.launch.cluster.Cluster` asks, answered from a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from syno.launch.cluster import LostWorkerError
from syno.launch.ray_actor import identity
from syno.launch.room import Demand, Node, room


def node(name: str, **total: float) -> Node:
    return Node(name, f"10.0.0.{name}", f"host-{name}", total)


@dataclass
class FakeActor:
    """A worker that runs until the test says otherwise.

    Args:
        node: where it is; None while it waits for room.
        state: what its worker does: what `look` returns.
        lost: why it is gone.
    """

    node: Node | None
    calls: list[tuple[str, ...]] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=lambda: {"code": None, "said": "", "lines": []})
    versions: dict[str, Any] = field(default_factory=identity)
    lost: LostWorkerError | None = None
    killed: bool = False
    ends: bool = True  # when it is asked to

    def call(self, method: str, *given: str) -> FakeCall:
        self.calls.append((method, *given))
        if method == "end" and self.ends:
            self.state |= {"code": 0, "said": "3"}
        return FakeCall(self, method)

    def kill(self) -> None:
        self.killed = True


@dataclass
class FakeCall:
    actor: FakeActor
    method: str

    def answer(self) -> str | None:
        actor = self.actor
        if actor.lost is not None:
            raise actor.lost
        if actor.node is None:
            return None
        if self.method == "hello":
            return json.dumps(actor.versions | {"node": actor.node.id, "host": actor.node.host})
        if self.method == "begin":
            return json.dumps({"process": 77})
        found = dict(actor.state)
        actor.state["lines"] = []
        return json.dumps(found)


class FakeCluster:
    """Places each worker on the first node with room, and lets others wait."""

    def __init__(self, *nodes: Node, change: Callable[[FakeActor], None] | None = None) -> None:
        self.there = list(nodes)
        self.actors: list[FakeActor] = []
        self.demands: list[Demand] = []
        self.is_closed = False
        self._change = change or (lambda actor: None)

    def nodes(self) -> Sequence[Node]:
        return self.there

    def free(self, resource: str) -> float:
        used = sum(a.node is not None and not a.killed for a in self.actors)
        return sum(node.total.get(resource, 0) for node in self.there) - used

    def start(self, demand: Demand) -> FakeActor:
        self.demands.append(demand)
        fitting = (n for n in self.there if self.taken(n) < room(demand, n))
        made = FakeActor(next(fitting, None))
        self._change(made)
        self.actors.append(made)
        return made

    def close(self) -> None:
        self.is_closed = True

    def taken(self, node: Node) -> int:
        return sum(a.node == node and not a.killed for a in self.actors)

    def lose(self, node: Node) -> None:
        """Let a node leave with all that is on it."""
        self.there.remove(node)
        for actor in self.actors:
            if actor.node == node and not actor.killed:
                actor.lost = LostWorkerError("The actor died because its node has died")

    @property
    def running(self) -> list[FakeActor]:
        return [a for a in self.actors if a.node is not None and not a.killed and a.lost is None]
