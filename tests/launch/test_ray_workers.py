"""Workers on a Ray cluster, as the search sees them: with a process instead of Ray."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from syno._util.errors import UserError
from syno.launch import ray_workers
from syno.launch.ray_workers import RayWorkers
from syno.store import Store


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_workers, "_MODULE", "launch.quick_ray_process")
    monkeypatch.setattr(ray_workers, "is_installed", lambda: True)
    with Store.open(str(tmp_path / "store.db")) as store:
        yield store


def until(found: Callable[[], object]) -> None:
    deadline = time.monotonic() + 300
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_process_is_told_what_to_start_by_a_pipe(store, tmp_path):
    notes: list[str] = []
    with RayWorkers(
        store,
        "a study",
        "fine:1",
        4,
        cores=2,
        gpus=0.5,
        tags=("fast",),
        data_dir="data",
        note=notes.append,
    ) as workers:
        until(lambda: workers.check() or workers.placed)
        (process,) = workers.processes
        command = Path(f"/proc/{process}/cmdline").read_text()
    assert notes[0] == "2 workers on the Ray cluster, which has 1 node"
    given = json.loads(notes[1])
    assert notes[2] == "all workers ended"
    assert (given["address"], given["jobs"], given["cores"], given["gpus"]) == ("fine:1", 4, 2, 0.5)
    assert (given["one_node"], given["loopback"]) == (True, False)
    assert given["orders"] == {
        "store": str(store.path),
        "study": "a study",
        "tags": ["fast"],
        "idle_s": None,
        "data_dir": "data",
        "device": "cuda",
        "predictor": None,
        "threads": 2,
        "folder": os.getcwd(),
    }
    assert given["cwd"] == "/"
    assert str(store.path) not in command
    assert workers.processes == []


def test_a_mistake_at_the_start_is_its_message(store):
    with pytest.raises(UserError, match="no room\n  what to do: add nodes"):
        RayWorkers(store, "a", "mistake:1", note=print).__enter__()


def test_a_process_that_fails_at_the_start_is_reported_with_its_last_line(store):
    with pytest.raises(
        UserError,
        match="ended with exit code 1: the library of Ray is broken\n  what to do: `ray s",
    ):
        RayWorkers(store, "a", "crash:1", note=print).__enter__()


def test_a_cluster_that_does_not_answer_is_reported(store, monkeypatch):
    monkeypatch.setattr(ray_workers, "CONNECT_S", 0.5)
    workers = RayWorkers(store, "a", "mute:1", note=print)
    with pytest.raises(UserError, match=r"'mute:1' did not answer within 0.5 s\n  what to do"):
        workers.__enter__()
    assert workers.processes == []


def test_a_process_that_is_killed_is_started_again(store, monkeypatch):
    monkeypatch.setattr(ray_workers, "_POLICY", replace(ray_workers._POLICY, first_s=0.01))
    notes: list[str] = []
    with RayWorkers(store, "a", "fine:1", note=notes.append) as workers:
        (first,) = workers.processes
        os.kill(first, signal.SIGKILL)
        until(lambda: workers.check() or workers.processes not in ([first], []))
        until(lambda: workers.check() or workers.placed)
    lost = "the process that speaks with the Ray cluster ended with exit code -9"
    assert f"{lost}; it is started again in 0.01 s" in notes


def test_a_cluster_that_is_lost_again_and_again_ends_the_search(store, monkeypatch):
    monkeypatch.setattr(ray_workers, "_POLICY", replace(ray_workers._POLICY, first_s=0.001))
    notes: list[str] = []
    with (
        RayWorkers(store, "a", "later:1", note=notes.append) as workers,
        pytest.raises(
            UserError, match=r"'later:1' is lost: .*Failed to connect to GCS(.|\n)*`syno resume`"
        ),
    ):
        until(workers.check)
    assert sum("it is started again" in note for note in notes) == 4


def test_a_cluster_that_is_not_found_again_is_looked_for_some_times(store, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_workers, "_POLICY", replace(ray_workers._POLICY, first_s=0.001))
    notes: list[str] = []
    with (
        RayWorkers(
            store, "a", "gone:1", data_dir=str(tmp_path / "memory"), note=notes.append
        ) as workers,
        pytest.raises(UserError, match=r"the Ray cluster 'gone:1' is lost: nothing answers\n"),
    ):
        until(workers.check)
    assert sum("it is started again" in note for note in notes) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"address": "ray://head:10001"}, "is an address of Ray Client, which Syno does not use"),
        ({"address": "head"}, "'head' is not the address of a Ray cluster\n  expected: auto, or H"),
        ({"address": "head:port"}, "is not the address of a Ray cluster"),
        ({"address": "head:70000"}, "is not the address of a Ray cluster"),
        ({"address": "a b:1"}, "is not the address of a Ray cluster"),
        ({"address": "local"}, "is not the address of a Ray cluster"),
        ({"jobs": 0}, "'jobs' is an integer of at least 1, got 0"),
        ({"gpus": 1.5}, "a share of one GPU or a whole number of them, got 1.5"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(store, changes, message):
    given = {"address": "auto", "jobs": 2, "gpus": 0.0} | changes
    address, jobs = given.pop("address"), given.pop("jobs")
    with pytest.raises(UserError) as error:
        RayWorkers(store, "a", address, jobs, **given, note=print)
    assert message in str(error.value)


def test_without_ray_it_says_what_to_install(store, monkeypatch):
    monkeypatch.setattr(ray_workers, "is_installed", lambda: False)
    with pytest.raises(UserError, match=r"pip install 'syno\[ray\]' on all machines, or start the"):
        RayWorkers(store, "a", "auto", note=print)


def test_a_store_in_memory_has_none(monkeypatch):
    monkeypatch.setattr(ray_workers, "is_installed", lambda: True)
    with (
        Store.open("sqlite://") as store,
        pytest.raises(UserError, match="other processes cannot reach it"),
    ):
        RayWorkers(store, "a", "auto", note=print)
