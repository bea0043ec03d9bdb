"""Worker processes on one machine: they are started again, and end with what started them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from syno._util.errors import UserError
from syno.runs.processes import STATE, stat_fields
from syno.store import Store
from syno.study import local_workers
from syno.study.local_workers import LocalWorkers, shared_cores
from syno.study.starters import starter
from syno.study_options import StudyOptions


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(local_workers, "_MODULE", "study.quick_worker")
    with Store.open(str(tmp_path / "store.db")) as store:
        yield store


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def lives(process: int) -> bool:
    return stat_fields(process)[STATE : STATE + 1] not in ([], ["Z"])


def test_they_are_told_what_to_do_by_a_pipe_and_have_their_own_cores(store):
    with LocalWorkers(store, "a study", 1, "data", tags=("fast",)) as workers:
        (job,) = workers._jobs
        assert job.process is not None
        assert job.process.stdout is not None
        given = json.loads(job.process.stdout.readline())
        command = Path(f"/proc/{job.process.pid}/cmdline").read_text()
    assert given["store"] == str(store.path)
    assert (given["study"], given["data_dir"], given["tags"]) == ("a study", "data", ["fast"])
    assert given["cores"] == sorted(os.sched_getaffinity(0))
    assert given["threads"] == str(len(given["cores"]))
    assert str(store.path) not in command


def test_one_that_is_killed_is_started_again_and_all_end_in_the_end(store):
    with LocalWorkers(store, None, 2) as workers:
        first, second = workers.processes
        os.kill(first, signal.SIGKILL)
        until(lambda: not lives(first))
        workers.check()
        third, same = workers.processes
        assert same == second
        assert third != first
    assert not lives(second)
    assert not lives(third)


def test_one_that_the_system_preempts_is_started_again(store):
    with LocalWorkers(store, None, 1) as workers:
        (first,) = workers.processes
        os.kill(first, signal.SIGTERM)
        until(lambda: not lives(first))
        workers.check()
        assert workers.processes not in ([], [first])


def test_a_mistake_of_the_user_ends_them_with_its_message(store):
    with LocalWorkers(store, "mistake", 2) as workers:
        until(lambda: len(workers.processes) < 2)
        with pytest.raises(UserError, match="there is no data here"):
            workers.check()


def test_one_that_always_fails_at_its_start_is_reported(store):
    with LocalWorkers(store, "failure", 1) as workers:
        for _ in range(2):
            until(lambda: not workers.processes)
            workers.check()
        until(lambda: not workers.processes)
        with pytest.raises(UserError, match="exit code 1 shortly after its start, 3 times"):
            workers.check()


def test_those_that_have_nothing_to_do_are_waited_for(store):
    with LocalWorkers(store, "done", 2, idle_s=0.0) as workers:
        workers.wait()
    assert workers.evaluated == 4


def test_they_end_when_what_started_them_is_killed(store, tmp_path):
    script = (
        "import sys, time\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from syno.store import Store\n"
        "from syno.study import local_workers\n"
        "local_workers._MODULE = 'study.quick_worker'\n"
        f"store = Store.open({str(store.path)!r})\n"
        "with local_workers.LocalWorkers(store, None, 1) as workers:\n"
        "    print(workers.processes[0], flush=True)\n"
        "    time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    assert lives(worker)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until(lambda: not lives(worker))


def test_a_store_in_memory_has_none():
    with (
        Store.open("sqlite://") as store,
        pytest.raises(UserError, match="other processes cannot reach it"),
    ):
        LocalWorkers(store, None, 2)


@pytest.mark.parametrize(
    ("cores", "jobs", "shares"),
    [
        ([0, 1, 2, 3], 2, [[0, 1], [2, 3]]),
        ([3, 5, 8], 2, [[3, 5], [8]]),
        ([0, 1], 3, [[0], [1], [0]]),
        ([4], 1, [[4]]),
        ([0, 1], 0, []),
    ],
)
def test_the_cores_of_a_machine_are_shared(cores, jobs, shares):
    assert shared_cores(cores, jobs) == shares


@pytest.mark.parametrize(
    ("jobs", "gpus", "places"),
    [(None, True, [0, 1, 2]), (5, True, [0, 1, 2, 0, 1]), (2, False, [None, None])],
)
def test_a_search_places_its_workers_on_the_gpus(store, monkeypatch, jobs, gpus, places):
    monkeypatch.setattr("syno.study.starters.count_gpus", lambda: 3)
    around = {"data_dir": None, "note": print}
    made = starter(store, "study", StudyOptions(jobs=jobs, gpus=gpus), **around)
    assert [job.gpu for job in made._jobs] == places
    assert starter(store, "study", StudyOptions(), **around) is None
