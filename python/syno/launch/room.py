"""How many workers have room in a cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from syno._util.errors import UserError
from syno._util.numbers import counted

CORES, GPUS = "CPU", "GPU"
# What a worker takes of a custom resource that has the name of one of its tags: next to nothing,
# because the resource says where workers may run, and not how many.
TAG_SHARE = 0.001
_FINEST = 10_000  # a cluster counts ten-thousandths of a resource
_MOST_SHOWN = 8  # nodes that a message lists


@dataclass(frozen=True)
class Node:
    """A machine of a cluster that is there.

    Args:
        id: its name within the cluster.
        address: its network address, and `host` the name of the machine.
        total: what it has of each resource, whether in use or not.
    """

    id: str
    address: str
    host: str
    total: Mapping[str, float]

    @property
    def in_words(self) -> str:
        """The name of the machine with its cores and GPUs."""
        cores, gpus = self.total.get(CORES, 0), self.total.get(GPUS, 0)
        more = f", {_gpus(gpus)}" if gpus else ""
        return f"{self.host} ({self.address}: {_cores(cores)}{more})"


@dataclass(frozen=True)
class Demand:
    """What one worker needs of a node.

    Args:
        cores: whole cores.
        gpus: a share of one GPU, or a whole number of them.
        resources: amounts of custom resources of the cluster.
        node: the id of the only node that it may run on; None for any node.
    """

    cores: int
    gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict)
    node: str | None = None

    @property
    def in_words(self) -> str:
        """Cores, GPUs and resources."""
        parts = [_cores(self.cores)]
        if self.gpus:
            parts.append(_gpus(self.gpus))
        if self.resources:
            named = ", ".join(f"'{name}'" for name in self.resources)
            parts.append(f"a node with {named}")
        return " and ".join(parts)


def tag_resources(tags: Sequence[str], nodes: Sequence[Node]) -> dict[str, float]:
    """Return the custom resources that some nodes have and that are named like a tag."""
    known = {name for node in nodes for name in node.total}
    own = {CORES, GPUS, "memory", "object_store_memory"}
    return {tag: TAG_SHARE for tag in tags if tag in known - own and not tag.startswith("node:")}


def room(demand: Demand, node: Node) -> int:
    """Count the workers that a node with nothing else on it has room for."""
    if demand.node not in (None, node.id):
        return 0
    fits = [_times(node.total.get(CORES, 0), demand.cores)]
    if demand.gpus:
        gpus = node.total.get(GPUS, 0)
        # Shares of one worker are of one GPU: the rest of each GPU is left over.
        whole = demand.gpus >= 1
        fits.append(_times(gpus, demand.gpus) if whole else int(gpus) * _times(1, demand.gpus))
    fits += [_times(node.total.get(name, 0), share) for name, share in demand.resources.items()]
    return min(fits)


def check_room(demand: Demand, jobs: int | None, nodes: Sequence[Node]) -> int:
    """Return the number of workers to start: `jobs`, or as many as have room.

    Raises:
        UserError: if they have no room, even with nothing else on the nodes.
    """
    most = sum(room(demand, node) for node in nodes)
    if most >= (jobs or 1):
        return jobs or most
    found = "; ".join(node.in_words for node in nodes[:_MOST_SHOWN])
    if len(nodes) > _MOST_SHOWN:
        found += f"; and {len(nodes) - _MOST_SHOWN} more"
    advice = f"--jobs {most}, or less" if most else "less"
    raise UserError(
        f"{'a worker' if jobs in (None, 1) else f'{jobs} workers'} with {demand.in_words}"
        f"{'' if jobs in (None, 1) else ' each'} cannot be placed: the Ray cluster has room for "
        f"{most or 'none'}\n"
        f"  found: {counted(len(nodes), 'node')}: {found}\n"
        f"  what to do: {advice} for each worker (--cores-per-worker, --gpus-per-worker, "
        "--worker-tags), or add nodes to the cluster first"
    )


def _times(total: float, share: float) -> int:
    """How often a share is contained in a total, in the units of a cluster."""
    return math.floor(round(total * _FINEST) / max(1, round(share * _FINEST)))


def _cores(count: float) -> str:
    return f"{count:g} core{'' if count == 1 else 's'}"


def _gpus(count: float) -> str:
    return f"{count:g} GPU{'' if count == 1 else 's'}"
