"""What Syno asks of Ray, and what it makes of Ray's errors: with a fake in the place of Ray."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from syno._util.errors import UserError
from syno.launch.cluster import LostWorkerError
from syno.launch.ray_actor import RayWorker
from syno.launch.ray_cluster import RayCluster, in_short
from syno.launch.room import Demand, Node


class RayError(Exception):
    pass


class ActorUnavailableError(RayError):
    pass


class FakeRay:
    """Ray's interface, as far as Syno uses it.

    error: what `init` raises; result: what the next call gives, an exception if it raises one, and
    None if it has not returned.
    """

    exceptions = SimpleNamespace(RayError=RayError, ActorUnavailableError=ActorUnavailableError)

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.result = error, object()
        self.asked: list[Any] = []

    def init(self, **given: Any) -> None:
        self.asked.append(given)
        if self.error is not None:
            raise self.error

    def remote(self, kind: type) -> Any:
        self.asked.append(kind)
        return self

    def options(self, **given: Any) -> Any:
        self.asked.append(given)
        method = SimpleNamespace(remote=lambda *given: ("look", *given))
        return SimpleNamespace(remote=lambda: SimpleNamespace(look=method))

    def nodes(self) -> list[dict[str, Any]]:
        found = {"NodeManagerAddress": "10.0.0.1", "NodeManagerHostname": "host"}
        return [
            found | {"NodeID": "a", "Alive": True, "Resources": {"CPU": 2.0}},
            found | {"NodeID": "b", "Alive": False, "Resources": {}},
        ]

    def available_resources(self) -> dict[str, float]:
        return {"CPU": 1.5}

    def wait(self, references: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        assert timeout == 0
        return ([], references) if self.result is None else (references, [])

    def get(self, reference: Any) -> Any:
        self.asked.append(reference)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def kill(self, handle: Any) -> None:
        self.asked.append("kill")

    def shutdown(self) -> None:
        self.asked.append("shutdown")


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    made = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", made)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return made


def test_it_connects_without_the_lines_of_workers_and_lists_who_is_there(ray: FakeRay) -> None:
    cluster = RayCluster("auto")
    assert ray.asked[0] == {"address": "auto", "log_to_driver": False, "logging_level": "ERROR"}
    assert ray.asked[1] is RayWorker
    assert cluster.nodes() == [Node("a", "10.0.0.1", "host", {"CPU": 2.0})]
    assert (cluster.free("CPU"), cluster.free("GPU")) == (1.5, 0.0)
    cluster.close()
    assert ray.asked[-1] == "shutdown"


def test_an_actor_takes_what_a_worker_needs_and_is_not_started_again_by_ray(ray: FakeRay) -> None:
    ray.result = '{"code": null}'
    actor = RayCluster("auto").start(Demand(2, 0.5, {"jetson": 0.001}))
    assert ray.asked[-1] == {
        "num_cpus": 2,
        "num_gpus": 0.5,
        "resources": {"jetson": 0.001},
        "scheduling_strategy": "SPREAD",
        "max_restarts": 0,
        "max_task_retries": 0,
    }
    call = actor.call("look", "text")
    assert call.answer() == '{"code": null}'
    assert ray.asked[-1] == ("look", "text")
    actor.kill()
    assert ray.asked[-1] == "kill"


MESSAGE = """The actor died unexpectedly before finishing this task.
\tclass_name: RayWorker
\tactor_id: 0123
The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit \
detail: End of file. Some common causes include: (1) the process was killed"""
NODE = "The actor died because its node has died. Node Id: 01"


def test_a_lost_actor_is_told_apart_from_one_out_of_reach(ray: FakeRay) -> None:
    call = RayCluster("auto").start(Demand(1)).call("look")
    ray.result = None
    assert call.answer() is None
    ray.result = RayError(MESSAGE)
    with pytest.raises(
        LostWorkerError, match="The actor is dead because its worker process"
    ) as lost:
        call.answer()
    assert (lost.value.is_final, lost.value.with_node) == (True, False)
    ray.result = RayError(NODE)
    with pytest.raises(LostWorkerError) as lost:
        call.answer()
    assert (lost.value.is_final, lost.value.with_node) == (True, True)
    ray.result = ActorUnavailableError("no answer")
    with pytest.raises(LostWorkerError) as lost:
        call.answer()
    assert not lost.value.is_final
    ray.result = {"not": "text"}
    with pytest.raises(LostWorkerError, match="it answered with a dict instead of a text"):
        call.answer()


def test_the_reason_of_ray_is_shortened() -> None:
    assert in_short(MESSAGE) == (
        "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR "
        "Worker exit detail: End of file."
    )
    assert len(in_short("x" * 10_000)) == 303


def test_without_a_cluster_it_says_how_to_start_one(ray: FakeRay) -> None:
    ray.error = ConnectionError("Could not find any running Ray instance.")
    with pytest.raises(UserError) as error:
        RayCluster("auto")
    assert str(error.value) == (
        "no Ray cluster runs on this machine (--ray auto)\n"
        "  what to do: `ray start --head` on the first machine, and `ray start "
        "--address=HOST:PORT` on each other machine"
    )


def test_other_versions_of_ray_and_python_are_a_message(ray: FakeRay) -> None:
    ray.error = RuntimeError(
        "Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.12.1\n"
        "This process on node 10.0.0.2 was started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"
    )
    with pytest.raises(UserError) as error:
        RayCluster("auto")
    assert str(error.value) == (
        "cannot connect to the Ray cluster 'auto': Version mismatch: The cluster was started with: "
        "Ray: 2.60.0 Python: 3.12.1 This process on node 10.0.0.2 was started with: Ray: 2.60.0 "
        "Python: 3.11.7\n"
        "  what to do: install the same versions of Ray, Python and Syno on all machines, and "
        "start Ray on this one: `ray start --address=HOST:PORT`"
    )


def test_an_address_that_refuses_is_noticed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # it is not imported for that
    with pytest.raises(UserError) as error:
        RayCluster("127.0.0.1:1")
    assert "nothing answers at the address '127.0.0.1:1' of the Ray cluster" in str(error.value)
    assert "`ray start --head` starts one" in str(error.value)
    with pytest.raises(UserError, match="nothing answers"):
        RayCluster("no.such.host.invalid:6379")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(UserError, match="nothing answers"):
        RayCluster("auto")
