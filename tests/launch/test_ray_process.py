"""What the process that speaks with a cluster says to the search."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from syno._util.errors import UserError
from syno.launch.ray_process import serve

from .fake_cluster import FakeActor, FakeCluster, node

GIVEN: dict[str, Any] = {
    "address": "auto",
    "jobs": None,
    "cores": 1,
    "gpus": 0.0,
    "tags": [],
    "one_node": False,
    "loopback": False,
    "orders": {"store": "url", "idle_s": None, "threads": 1, "folder": "/"},
}


def served(
    cluster: FakeCluster, until: Callable[[list[dict[str, Any]]], bool], **changes: Any
) -> list[dict[str, Any]]:
    """The messages until a condition holds for them, with the cluster closed in the end."""
    said: list[dict[str, Any]] = []
    finished = threading.Event()

    def say(message: dict[str, Any]) -> None:
        said.append(message)
        if until(said):
            finished.set()

    try:
        serve(GIVEN | changes, lambda address: cluster, finished, say)
    finally:
        assert cluster.is_closed
        assert all(actor.killed for actor in cluster.actors)
    return said


def test_it_starts_as_many_as_have_room_and_says_where_they_run():
    cluster = FakeCluster(node("1", CPU=2), node("2", CPU=1))
    said = served(cluster, lambda said: said[-1]["kind"] == "placed" and len(placed(said)) == 3)
    assert said[0] == {"kind": "ready", "workers": 3, "nodes": 2}
    assert [each["node"] for each in placed(said)] == ["1", "1", "2"]
    assert all(("end",) in actor.calls for actor in cluster.actors)


def placed(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return said[-1]["workers"]


def test_tags_that_are_resources_and_gpus_are_asked_of_the_cluster():
    cluster = FakeCluster(node("1", CPU=4, GPU=1), node("2", CPU=4, GPU=1, jetson=1))
    served(cluster, lambda said: len(said) > 1, gpus=0.5, cores=2, tags=["jetson", "fast"])
    assert len(cluster.demands) == 2
    assert cluster.demands[0].in_words == "2 cores and 0.5 GPUs and a node with 'jetson'"


def test_a_file_is_for_one_node():
    cluster = FakeCluster(node("1", CPU=2), node("2", CPU=1))
    with pytest.raises(UserError, match="SQLite file of this machine, and the Ray cluster has 2"):
        served(cluster, bool, one_node=True)
    alone = FakeCluster(node("1", CPU=2))
    served(alone, lambda said: len(said) > 1, one_node=True)
    assert {demand.node for demand in alone.demands} == {"1"}


def test_an_address_that_means_each_machine_itself_is_refused():
    with pytest.raises(UserError, match="the Ray cluster has 2 machines"):
        served(FakeCluster(node("1", CPU=2), node("2", CPU=1)), bool, loopback=True)
    served(FakeCluster(node("1", CPU=2)), lambda said: len(said) > 1, loopback=True)


def test_workers_are_ended_when_something_is_wrong():
    def mistaken(actor: FakeActor) -> None:
        actor.state = {"code": 2, "said": "there is no data here", "lines": []}

    cluster = FakeCluster(node("1", CPU=2), change=mistaken)
    with pytest.raises(UserError, match="there is no data here"):
        served(cluster, lambda said: False)
    with pytest.raises(UserError, match="cannot be placed"):
        served(FakeCluster(node("1", CPU=2)), bool, gpus=1.0)
