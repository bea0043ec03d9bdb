"""The process that speaks with a Ray cluster for a search; `RayWorkers` starts it.

Ray ends a process that it is connected from when the head of the cluster is gone for a minute, and
handles signals in its own way: so the search has none of it. This process reads its orders from its
standard input, and ends its workers and itself at the end of the input. It writes lines of JSON to
its standard output:

    {"kind": "ready", "workers": 4, "nodes": 2}
    {"kind": "note", "text": "..."}                what the user should know
    {"kind": "placed", "workers": [...]}           which workers run, and where
    {"kind": "mistake", "text": "..."}             a UserError: everything ends
"""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.launch.cluster import Cluster
from syno.launch.ray_actor import identity
from syno.launch.ray_cluster import RayCluster
from syno.launch.room import Demand, check_room, tag_resources
from syno.launch.starter import MISTAKE
from syno.launch.supervisor import Supervisor
from syno.runs import helper_process

_STEP_S = 0.25
_END_S = 40.0  # more than the supervisor waits for its workers

Say = Callable[[dict[str, Json]], None]


def main(connect: Callable[[str], Cluster] = RayCluster) -> None:
    """Keep workers running until the input ends."""
    out, given = helper_process.answers(), helper_process.read_orders()
    finished = threading.Event()
    helper_process.at_the_end_of_input(functools.partial(_end, finished))
    try:
        serve(given, connect, finished, lambda message: _write(out, message))
    except UserError as error:
        _write(out, {"kind": "mistake", "text": str(error)})
        sys.exit(MISTAKE)


def serve(
    given: dict[str, Any],
    connect: Callable[[str], Cluster],
    finished: threading.Event,
    say: Say,
) -> None:
    """Connect to the cluster, and keep workers running until `finished` is set.

    Args:
        given: `address`, `jobs` (None: as many as there is room for), `cores`, `gpus`, `tags`,
            `one_node` (whether the store is a file of this machine), `loopback` (whether the
            address of the store means this machine) and the `orders` of a worker.
        connect: returns the cluster at an address.
        finished: the workers are ended when it is set.
        say: takes the messages.

    Raises:
        UserError: if there is no such cluster, no room, or a mistake that a worker reports.
    """
    cluster = connect(given["address"])
    try:
        nodes = cluster.nodes()
        _check_store(given, len(nodes), len({node.address for node in nodes}))
        node = nodes[0].id if given["one_node"] else None
        resources = tag_resources(given["tags"], nodes)
        demand = Demand(given["cores"], given["gpus"], resources, node)
        jobs = check_room(demand, given["jobs"], nodes)
        say({"kind": "ready", "workers": jobs, "nodes": len(nodes)})
        supervisor = Supervisor(
            cluster,
            demand,
            jobs,
            given["orders"],
            identity(),
            lambda text: say({"kind": "note", "text": text}),
        )
        try:
            placed: list[dict[str, Json]] = []
            while not finished.wait(_STEP_S):
                supervisor.step()
                if supervisor.placed != placed:
                    placed = supervisor.placed
                    say({"kind": "placed", "workers": list(placed)})
        finally:
            supervisor.end()
    finally:
        cluster.close()


def _check_store(given: dict[str, Any], nodes: int, machines: int) -> None:
    """Check that workers on all nodes reach the store."""
    advice = (
        "  what to do: use a server that all nodes reach: --store postgresql://user@host/database"
    )
    if given["one_node"] and nodes > 1:
        raise UserError(
            f"the store is a SQLite file of this machine, and the Ray cluster has {nodes} nodes\n"
            f"{advice}"
        )
    if given["loopback"] and machines > 1:
        raise UserError(
            "the address of the store means the machine itself on each machine, and the Ray "
            f"cluster has {machines} machines\n{advice}"
        )


def _end(finished: threading.Event) -> None:
    finished.set()
    time.sleep(_END_S)
    sys.stderr.write("the Ray cluster does not answer at the end\n")
    os._exit(1)  # calls of Ray may wait for ever


def _write(out: TextIO, message: dict[str, Json]) -> None:
    try:
        out.write(json.dumps(message) + "\n")
        out.flush()
    except BrokenPipeError:  # the search is gone: its end of the input says so, too
        sys.stderr.write(f"{message.get('text', '')}\n")
