"""A Ray cluster, with Ray's core alone: the only module that calls Ray.

Ray sends the class of an actor as the name of a module and of a class, which the node imports from
what is installed there.
"""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Sequence
from types import ModuleType

from syno._util.checks import short
from syno._util.errors import UserError
from syno.launch.cluster import LostWorkerError
from syno.launch.ray_actor import RayWorker
from syno.launch.room import Demand, Node

_ANSWER_S = 5.0  # in which a machine accepts a connection
_MOST_REASON = 300  # characters
# From here on, Ray's message about a lost actor lists what may have happened to any.
_GUESSES = "Some common causes"
_NODE_DIED = "its node has died"
_HOW = "  expected: auto, or HOST:PORT as `ray start --head` prints it"


def is_installed() -> bool:
    """Whether the package of Ray is there; it is not imported."""
    return importlib.util.find_spec("ray") is not None


def check_address(address: str) -> None:
    """Check that a text can be the address of a Ray cluster.

    Raises:
        UserError: if it is not.
    """
    if address.startswith("ray://"):
        raise UserError(
            f"'{short(address)}' is an address of Ray Client, which Syno does not use\n"
            "  what to do: run the search on a machine of the cluster, with --ray auto"
        )
    if address == "auto":
        return
    _, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not 0 < int(port) < 1 << 16 or " " in address:
        raise UserError(f"'{short(address)}' is not the address of a Ray cluster\n{_HOW}")


class RayCluster:
    """A cluster that runs, to which this process connects.

    Args:
        address: `auto` for the cluster that this machine belongs to, or HOST:PORT.
        worker: the class of the actors.

    Raises:
        UserError: if there is no cluster, or if it has other versions of Ray or Python.
    """

    def __init__(self, address: str, worker: type = RayWorker) -> None:
        given = os.environ.get("RAY_ADDRESS", address) if address == "auto" else address
        check_address(given)
        if given != "auto":
            _check_answers(given)
        import ray

        self._ray: ModuleType = ray
        try:
            self._ray.init(address=given, log_to_driver=False, logging_level="ERROR")
        except ConnectionError as error:
            if given == "auto":
                raise UserError(
                    "no Ray cluster runs on this machine (--ray auto)\n"
                    "  what to do: `ray start --head` on the first machine, and `ray start "
                    "--address=HOST:PORT` on each other machine"
                ) from error
            raise UserError(_refused(given, error)) from error
        except (RuntimeError, ValueError) as error:  # such as other versions of Ray and Python
            raise UserError(_refused(given, error)) from error
        self._class = self._ray.remote(worker)

    def nodes(self) -> Sequence[Node]:
        """List the nodes that are there."""
        return [
            Node(
                str(each["NodeID"]),
                str(each["NodeManagerAddress"]),
                str(each["NodeManagerHostname"]),
                dict(each["Resources"]),
            )
            for each in self._ray.nodes()
            if each["Alive"]
        ]

    def free(self, resource: str) -> float:
        """Return how much of a resource nobody uses."""
        return float(self._ray.available_resources().get(resource, 0.0))

    def start(self, demand: Demand) -> RayActor:
        """Start a worker on a node with room for it; it waits until there is one."""
        strategy: object = "SPREAD"
        if demand.node is not None:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            strategy = NodeAffinitySchedulingStrategy(node_id=demand.node, soft=False)
        handle = self._class.options(
            num_cpus=demand.cores,
            num_gpus=demand.gpus,
            resources=dict(demand.resources),
            scheduling_strategy=strategy,
            max_restarts=0,  # the supervisor starts it again, and says why
            max_task_retries=0,
        ).remote()
        return RayActor(self._ray, handle)

    def close(self) -> None:
        """End all actors, and leave the cluster."""
        self._ray.shutdown()


class RayActor:
    """A worker on some node."""

    def __init__(self, ray: ModuleType, handle: object) -> None:
        self._ray, self._handle = ray, handle

    def call(self, method: str, *given: str) -> RayCall:
        """Begin the call of a method."""
        return RayCall(self._ray, getattr(self._handle, method).remote(*given))

    def kill(self) -> None:
        """End it at once. Nothing happens if it is gone."""
        self._ray.kill(self._handle)


class RayCall:
    """A call of a method of a worker."""

    def __init__(self, ray: ModuleType, reference: object) -> None:
        self._ray, self._reference = ray, reference

    def answer(self) -> str | None:
        """Return what the method returned, None if it has not returned yet."""
        if not self._ray.wait([self._reference], timeout=0)[0]:
            return None
        try:
            found = self._ray.get(self._reference)
        except self._ray.exceptions.RayError as error:
            reason = in_short(str(error))
            away = isinstance(error, self._ray.exceptions.ActorUnavailableError)
            raise LostWorkerError(
                reason, is_final=not away, with_node=_NODE_DIED in reason
            ) from error
        if not isinstance(found, str):
            raise LostWorkerError(f"it answered with a {type(found).__name__} instead of a text")
        return found


def in_short(message: str) -> str:
    """Shorten a message of Ray: without the fields of the actor and without guesses."""
    lines = [line for line in message.splitlines() if not line.startswith("\tactor_id")]
    text = " ".join(" ".join(lines).partition(_GUESSES)[0].split())
    for start in ("The actor is dead because", "The actor died because", "ModuleNotFoundError"):
        if start in text:
            text = start + text.partition(start)[2]
            break
    return text if len(text) <= _MOST_REASON else f"{text[:_MOST_REASON]}..."


def _check_answers(address: str) -> None:
    """Check that something listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S):
            return
    except (OSError, UnicodeError) as error:
        raise UserError(
            f"nothing answers at the address '{short(address)}' of the Ray cluster: {error}\n"
            f"{_HOW}\n"
            "  what to do: `ray status` on a machine of the cluster; `ray start --head` starts one"
        ) from error


def _refused(address: str, error: Exception) -> str:
    return (
        f"cannot connect to the Ray cluster '{short(address)}': {in_short(str(error))}\n"
        "  what to do: install the same versions of Ray, Python and Syno on all machines, and "
        "start Ray on this one: `ray start --address=HOST:PORT`"
    )
