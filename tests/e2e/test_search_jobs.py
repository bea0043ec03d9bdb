"""A search with worker processes on real images, some of which are killed."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from syno import SpaceOptions, UserError
from syno.store import Store
from syno.study.search import resume, search

MODEL = {"width": 4, "stages": 2}


class Killer(threading.Thread):
    """Kills the worker of every trial with an odd number, a moment after it took the trial."""

    def __init__(self, path: str) -> None:
        super().__init__(daemon=True)
        self._path = path
        self.killed: list[int] = []
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.2):
            if not os.path.exists(self._path):
                continue
            try:
                opened = Store.open(self._path, read_only=True)
            except UserError as error:
                assert "it is empty" in str(error)  # it is being made
                continue
            with opened as store:
                if not store.studies():
                    continue
                there = [w for w in store.workers() if w.is_alive and w.ask is not None]
            for worker in there:
                if worker.ask is not None and worker.ask % 2 and worker.ask not in self.killed:
                    self.killed.append(worker.ask)
                    time.sleep(0.5)
                    os.kill(int(worker.name.split(":")[1]), signal.SIGKILL)


@pytest.mark.slow
def test_a_search_whose_workers_are_killed_comes_to_its_end(tmp_path):
    path = str(tmp_path / "runs.db")
    killer = Killer(path)
    killer.start()
    found = search(
        "resnet-small",
        "digits",
        model_options=MODEL,
        evaluations=4,
        space=SpaceOptions(max_nodes=8000),
        seed=1,
        store=path,
        jobs=2,
    )
    killer.done.set()
    killer.join()
    assert killer.killed
    assert found.stop_reason == "evaluations"
    assert sum(e.is_evaluated for e in found.evaluations) == 4
    told = [e.data["ask"] for e in found.events if e.kind == "told"]
    assert sorted(told) == sorted(set(told))
    assert all(e.latency_ms for e in found.trained)
    more = resume(path, evaluations=5, jobs=1)
    assert sum(e.is_evaluated for e in more.evaluations) == 5
    assert more.evaluations[: len(found.evaluations)] == found.evaluations


def test_a_module_cannot_be_evaluated_by_workers(tmp_path):
    from syno import Placeholder

    net = Placeholder({"H": 8})
    with pytest.raises(UserError, match="jobs"):
        search(net, "digits", jobs=2, store=str(tmp_path / "runs.db"))
    with pytest.raises(UserError, match="a store in memory has no workers"):
        search("resnet-small", "digits", jobs=2, store="sqlite://")
