"""Workers on a real Ray cluster of several nodes, all of which are on this machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import check_log, emptied, expected, table
from launch.fake_worker_process import SPACE
from study.fakes import FakeSpace
from syno import RayOptions, SpaceOptions
from syno._util.errors import UserError
from syno.launch import ray_workers
from syno.launch.ray_workers import RayWorkers
from syno.runs.helper_process import search_path
from syno.runs.processes import STATE, stat_fields
from syno.store import Store
from syno.study import Study, StudySettings
from syno.study.driver import drive
from syno.study.search import search

EVALUATIONS = 12
SEED = 11
TESTS = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _importable() -> Iterator[None]:
    """Let the nodes of a cluster import what this process does: they start in its environment."""
    pytest.importorskip("ray", reason="ray is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), *search_path()]))
        # Ray's own processes have long to start on a machine with other work.
        patch.setenv("RAY_agent_register_timeout_ms", "300000")
        patch.setenv("RAY_worker_register_timeout_seconds", "300")
        patch.setenv("RAY_gcs_server_request_timeout_seconds", "300")
        yield


@dataclass
class Machines:
    """A cluster: a head without cores, and nodes that a test may remove."""

    cluster: Any
    nodes: dict[str, Any] = field(default_factory=dict)

    def add(self, **has: Any) -> str:
        """Add a node, and return its id."""
        made = self.cluster.add_node(**has)
        self.nodes[made.node_id] = made
        return str(made.node_id)

    def remove(self, node: str) -> None:
        self.cluster.remove_node(self.nodes.pop(node))


@pytest.fixture(scope="module")
def machines() -> Iterator[Machines]:
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False}
    made = Machines(Cluster(initialize_head=True, head_node_args=head))
    try:
        made.add(num_cpus=1)
        made.add(num_cpus=1, num_gpus=1, resources={"jetson": 1})
        yield made
    finally:
        made.cluster.shutdown()


def parent(process: int) -> int:
    return int(stat_fields(process)[STATE + 1])


class Search:
    """A search with fake evaluations on a cluster, and something that happens meanwhile."""

    def __init__(
        self, machines: Machines, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ray_workers, "_MODULE", "launch.fake_ray_process")
        emptied(url)
        self.machines, self.url, self.folder = machines, url, folder
        self.notes: list[str] = []
        self.placed: list[Any] = []  # the largest list of workers that ran at the same time

    def run(self, meanwhile: Callable[[RayWorkers], bool] | None = None, **given: Any) -> None:
        """Run it to its end. meanwhile: is called until it returns True, once all workers run."""
        settings = StudySettings(evaluations=EVALUATIONS, seed=SEED)
        waits = [] if meanwhile is None else [meanwhile]
        jobs = given.get("jobs") or 2
        with Store.open(self.url) as store:
            study = Study.create(store, "study", settings, FakeSpace(SPACE))
            with RayWorkers(
                store,
                "study",
                self.machines.cluster.address,
                data_dir=str(self.folder),
                note=self.notes.append,
                **given,
            ) as workers:

                def watch() -> None:
                    workers.check()
                    if len(workers.placed) > len(self.placed):
                        self.placed = workers.placed
                    if waits and len(workers.placed) == jobs and waits[0](workers):
                        waits.clear()

                until = time.monotonic() + 300
                while len(workers.placed) < jobs:
                    assert time.monotonic() < until, self.notes
                    watch()
                    time.sleep(0.1)
                assert drive(study, watch=watch).name == "evaluations"
            summary = store.summary("study")
            assert not any(worker.is_alive for worker in store.workers())
        assert not waits
        check_log(summary)
        assert table(summary) == expected(self.folder, EVALUATIONS)


@pytest.fixture
def run(
    machines: Machines, postgresql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Search:
    return Search(machines, postgresql, tmp_path, monkeypatch)


def test_workers_are_placed_on_the_nodes_that_have_room(run: Search) -> None:
    run.run()
    assert run.notes[0] == "2 workers on the Ray cluster, which has 3 nodes"
    assert sorted(each["node"] for each in run.placed) == sorted(run.machines.nodes)
    assert run.notes[1:] == []


def test_workers_with_shares_of_a_gpu_are_where_it_is(run: Search) -> None:
    node = run.machines.add(num_cpus=2, num_gpus=1, resources={"tall": 1})
    run.run(gpus=0.5, jobs=2, tags=("tall", "fast"))
    assert [each["node"] for each in run.placed] == [node, node]
    assert [path.read_text() for path in run.folder.glob("gpus-*")] == ["0", "0"]
    run.machines.remove(node)


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("worker", "its process was killed by SIGKILL"),
        ("actor", "The actor is dead because its worker process has died."),
    ],
)
def test_a_worker_that_is_killed_is_started_again(run: Search, what: str, reason: str) -> None:
    def kill(workers: RayWorkers) -> bool:
        process = int(str(workers.placed[0]["process"]))
        os.kill(process if what == "worker" else parent(process), signal.SIGKILL)
        return True

    run.run(kill)
    (note,) = (note for note in run.notes if "died:" in note)
    assert reason in note
    assert "it is started again in 1 s" in note


def test_a_node_that_leaves_is_survived(run: Search) -> None:
    run.machines.add(num_cpus=1)
    left: list[str] = []

    def remove(workers: RayWorkers) -> bool:
        left.append(str(workers.placed[0]["node"]))
        run.machines.remove(left[0])
        return True

    run.run(remove, jobs=2)
    (note,) = (note for note in run.notes if "its node left the cluster" in note)
    assert "it is started again elsewhere" in note


def test_more_than_the_cluster_has_is_refused_at_once(run: Search, tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(UserError, match="3 workers with 1 core and 1 GPU each cannot be placed"):
        run.run(gpus=1.0, jobs=3)
    with (
        Store.open(str(tmp_path / "store.db")) as store,
        pytest.raises(UserError, match="a SQLite file of this machine, and the Ray cluster has 3"),
        RayWorkers(store, "a", run.machines.cluster.address, note=print),
    ):
        pass
    assert time.monotonic() - began < ray_workers.CONNECT_S


def test_an_address_where_something_else_listens_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_workers, "CONNECT_S", 8.0)
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        Store.open(str(tmp_path / "store.db")) as store,
        pytest.raises(UserError, match="did not answer within 8 s"),
        RayWorkers(store, "a", f"127.0.0.1:{other.getsockname()[1]}", note=print),
    ):
        pass


SCRIPT = """
import sys, time
from syno.launch import ray_workers
from syno.launch.ray_workers import RayWorkers
from syno.store import Store
ray_workers._MODULE = "launch.fake_ray_process"
url, address, folder = sys.argv[1:]
with Store.open(url) as store, RayWorkers(store, None, address, data_dir=folder, note=print) as w:
    while len(w.placed) < 2 or len(store.workers()) < 2:
        w.check()
        time.sleep(0.1)
    print("placed", flush=True)
    time.sleep(600)
"""


def test_workers_end_when_the_search_is_killed(run: Search) -> None:
    address = run.machines.cluster.address
    with Store.open(run.url) as store:
        search = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, run.url, address, str(run.folder)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert search.stdout is not None
        with search.stdout:
            assert any(line == "placed\n" for line in search.stdout)
            search.kill()
            search.wait()
        until = time.monotonic() + 60
        while any(worker.is_alive for worker in store.workers()):
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_search_on_one_node_with_a_file(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 2, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        found = search(
            "resnet-small",
            "digits",
            model_options={"width": 4, "stages": 2},
            evaluations=2,
            space=SpaceOptions(max_nodes=8000),
            seed=1,
            store=str(tmp_path / "runs.db"),
            cluster=RayOptions(ray=cluster.address),
        )
    finally:
        cluster.shutdown()
    assert found.stop_reason == "evaluations"
    assert sum(e.is_evaluated for e in found.evaluations) == 2
    with Store.open(str(tmp_path / "runs.db"), read_only=True) as store:
        assert len(store.workers()) == 2
        assert not any(worker.is_alive for worker in store.workers())
