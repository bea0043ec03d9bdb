"""Workers on a cluster are started again when they die, with a pause, a limit and the reason."""

from __future__ import annotations

import itertools
import json

import pytest

from syno._util.errors import UserError
from syno.launch import supervisor as module
from syno.launch.cluster import LostWorkerError
from syno.launch.ray_actor import identity
from syno.launch.room import Demand
from syno.launch.supervisor import POLICY, Supervisor

from .fake_cluster import FakeActor, FakeCall, FakeCluster, node


class Scene:
    """A supervisor of workers on a fake cluster, with a clock that the test moves."""

    def __init__(self, cluster: FakeCluster, jobs: int, **orders: object) -> None:
        self.cluster, self.time, self.notes = cluster, 0.0, list[str]()
        given = {"store": "url", "idle_s": None, "threads": 1, "folder": "/"} | orders
        self.supervisor = Supervisor(
            cluster, Demand(1), jobs, given, identity(), self.notes.append, lambda: self.time
        )

    def pass_(self, seconds: float) -> None:
        until = self.time + seconds
        while self.time < until:
            self.time += 0.25
            self.supervisor.step()

    @property
    def starts(self) -> int:
        return len(self.cluster.actors)


def two_nodes(**more: object) -> FakeCluster:
    return FakeCluster(node("1", CPU=2), node("2", CPU=2), **more)


def test_each_worker_says_its_versions_and_is_told_what_to_do():
    scene = Scene(two_nodes(), 3, tags=["fast"])
    scene.pass_(2)
    assert [each["node"] for each in scene.supervisor.placed] == ["1", "1", "2"]
    for actor in scene.cluster.actors:
        names = [call[0] for call in actor.calls]
        assert names[:3] == ["hello", "begin", "look"]
        assert json.loads(actor.calls[1][1])["tags"] == ["fast"]
    assert scene.cluster.demands == [Demand(1)] * 3
    assert scene.notes == []


def test_one_whose_process_is_killed_is_started_again_with_the_reason():
    scene = Scene(two_nodes(), 2)
    scene.pass_(100)
    first = scene.cluster.actors[0]
    first.state = {"code": -9, "said": "", "lines": ["out of memory?"]}
    scene.pass_(3)
    assert first.killed
    assert scene.starts == 3
    assert len(scene.supervisor.placed) == 2
    assert scene.notes == [
        "worker 1 on host-1: out of memory?",
        "worker 1 on host-1 died: its process was killed by SIGKILL: out of memory?; it is "
        "started again in 1 s",
    ]


def test_one_that_fails_again_and_again_waits_longer_and_is_given_up():
    def fails(actor: FakeActor) -> None:
        actor.state = {"code": 1, "said": "", "lines": ["no CUDA"]}

    scene = Scene(two_nodes(change=fails), 1)
    starts = []
    with pytest.raises(UserError, match="all workers of the Ray cluster failed 5 times in a row"):
        while scene.time < 1000:
            scene.pass_(0.25)
            if scene.starts > len(starts):
                starts.append(scene.time)
    pauses = [round(b - a) for a, b in itertools.pairwise(starts)]
    assert scene.starts == POLICY.most
    assert pauses == [2, 3, 5, 9]  # 1, 2, 4 and 8 seconds, and the time until it is noticed
    assert "worker 1 on host-1 is given up after 5 failures in a row" in scene.notes[-1]
    assert "ended with exit code 1: no CUDA" in scene.notes[-1]


def test_workers_that_are_taken_away_every_half_minute_are_started_again_and_again():
    scene = Scene(two_nodes(), 1)
    for _ in range(3 * POLICY.most):
        scene.pass_(30)
        scene.cluster.actors[-1].state = {"code": -9, "said": "", "lines": []}
    scene.pass_(3)
    assert scene.starts == 3 * POLICY.most + 1
    assert not any("given up" in note for note in scene.notes)


def test_failures_do_not_add_up_over_a_long_time():
    scene = Scene(two_nodes(), 1)
    for _ in range(3 * POLICY.most):
        scene.pass_(100)
        scene.cluster.actors[-1].lost = LostWorkerError("its process has died")
    scene.pass_(3)
    assert scene.starts == 3 * POLICY.most + 1
    assert all("it is started again in 1 s" in note for note in scene.notes)


def test_others_go_on_when_one_is_given_up():
    def fails_on_the_second(actor: FakeActor) -> None:
        if actor.node is not None and actor.node.id == "2":
            actor.lost = LostWorkerError("ModuleNotFoundError: No module named 'syno'")

    cluster = FakeCluster(node("1", CPU=1), node("2", CPU=1), change=fails_on_the_second)
    scene = Scene(cluster, 2)
    scene.pass_(100)
    assert [each["node"] for each in scene.supervisor.placed] == ["1"]
    assert "given up" in scene.notes[-1]
    assert "No module named 'syno'" in scene.notes[-1]


def test_workers_of_a_node_that_leaves_go_elsewhere_or_wait():
    scene = Scene(two_nodes(), 3)
    scene.pass_(5)
    gone = scene.cluster.there[0]
    scene.cluster.lose(gone)
    scene.pass_(5)
    assert [each["node"] for each in scene.supervisor.placed] == ["2", "2"]
    assert sum("its node left the cluster" in note for note in scene.notes) == 2
    scene.pass_(60)
    assert scene.notes[-1] == (
        "1 of 3 workers of the Ray cluster have not started yet: each needs 1 core, and 0 cores "
        "are free on all nodes together"
    )
    scene.cluster.there.append(gone)  # it is back
    next(a for a in scene.cluster.actors if a.node is None).node = gone
    scene.pass_(5)
    assert len(scene.supervisor.placed) == 3
    assert scene.notes[-1] == "all workers of the Ray cluster have started"


def test_one_that_is_out_of_reach_for_a_while_is_not_lost():
    scene = Scene(two_nodes(), 1)
    scene.pass_(5)
    (actor,) = scene.cluster.actors
    actor.lost = LostWorkerError("unavailable", is_final=False)
    scene.pass_(10)
    actor.lost = None
    scene.pass_(5)
    assert scene.starts == 1
    assert len(scene.supervisor.placed) == 1
    assert scene.notes == []


def test_a_node_with_other_versions_ends_the_search_at_its_start():
    def old(actor: FakeActor) -> None:
        actor.versions = identity() | {"rules": "0000", "python": "3.99"}

    scene = Scene(two_nodes(change=old), 2)
    with pytest.raises(UserError) as error:
        scene.pass_(5)
    own = identity()
    assert str(error.value) == (
        f"worker 1 on host-1: this node has rules 0000 instead of {own['rules']}, python 3.99 "
        f"instead of {own['python']}\n"
        "  what to do: install the same version of Syno and of Python on all machines"
    )


def test_a_mistake_that_a_worker_reports_ends_the_search_but_not_after_a_minute():
    scene = Scene(two_nodes(), 2)
    scene.pass_(5)
    scene.cluster.actors[1].state = {"code": 2, "said": "there is no data here", "lines": []}
    with pytest.raises(UserError, match="worker 2 on host-1: there is no data here"):
        scene.pass_(5)
    later = Scene(two_nodes(), 2)
    later.pass_(100)
    later.cluster.actors[1].state = {"code": 2, "said": "there is no data here", "lines": []}
    later.pass_(5)
    assert "worker 2 on host-1 died: there is no data here" in later.notes[0]
    assert len(later.supervisor.placed) == 2


@pytest.mark.parametrize(("idle", "starts"), [(None, 2), (5.0, 1)])
def test_one_that_ends_by_itself_is_started_again_unless_it_may_end(idle, starts):
    scene = Scene(two_nodes(), 1, idle_s=idle)
    scene.pass_(5)
    scene.cluster.actors[0].state = {"code": 0, "said": "4", "lines": []}
    scene.pass_(5)
    assert scene.starts == starts
    assert scene.supervisor.evaluated == 4
    assert scene.supervisor.is_done == (idle is not None)


def test_at_the_end_all_are_asked_to_end_and_then_killed(monkeypatch):
    scene = Scene(two_nodes(), 4)
    scene.pass_(5)
    scene.supervisor.end()
    assert all(("end",) in actor.calls and actor.killed for actor in scene.cluster.actors)
    assert scene.supervisor.evaluated == 4 * 3
    # One that does not end, and one that is lost meanwhile.
    scene = Scene(two_nodes(), 2)
    scene.pass_(5)
    monkeypatch.setattr(module, "_END_S", 0.0)
    scene.cluster.actors[0].ends = False
    scene.cluster.actors[1].lost = LostWorkerError("gone")
    scene.supervisor.end()
    assert all(actor.killed for actor in scene.cluster.actors)


@pytest.mark.parametrize("answer", ["no JSON", "[1]", '{"failure": "OSError: no processes"}'])
def test_an_answer_that_is_no_answer_is_a_failure(answer, monkeypatch):
    scene = Scene(two_nodes(), 1)
    monkeypatch.setattr(FakeCall, "answer", lambda self: answer)
    scene.pass_(1)
    assert len(scene.notes) == 1
    assert "worker 1 died: " in scene.notes[0]
