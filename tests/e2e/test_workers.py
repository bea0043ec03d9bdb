"""Workers and drivers killed with `kill -9`: nothing is lost, nothing counts twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from postgresql import server
from study.fakes import FakeEvaluator, FakeSpace
from syno.store import Store, StudySummary
from syno.study import Study, StudySettings, run

SCRIPT = Path(__file__).with_name("fake_workers.py")
EVALUATIONS = 24
SEED = 7


@dataclass
class Cluster:
    """A driver and workers of `fake_workers.py` on one store."""

    folder: Path
    url: str
    evaluations: int = EVALUATIONS
    seconds: float = 0.1
    method: str = "uniform"
    idle: float = 30.0
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self, name: str, role: str) -> None:
        arguments = {
            "role": role,
            "store": self.url,
            "trace": str(self.folder / "trace"),
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "method": self.method,
            "idle": self.idle,
        }
        command = [sys.executable, str(SCRIPT), json.dumps(arguments)]
        self.running[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        assert process.wait(timeout=10) == -signal.SIGKILL

    def end(self, name: str) -> str:
        """Wait for the end of a process, and return what it said."""
        process = self.running.pop(name)
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        return said.strip()

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()

    def begun(self) -> int:
        trace = self.folder / "trace"
        if not trace.exists():
            return 0
        return sum(line.startswith("begin") for line in trace.read_text().splitlines())

    def wait_for(self, begun: int) -> None:
        deadline = time.monotonic() + 120
        while self.begun() < begun:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def summary(self) -> StudySummary:
        with Store.open(self.url, read_only=True) as store:
            return store.summary("study")


@pytest.fixture(params=["sqlite", "postgresql"])
def cluster(request, tmp_path):
    url = str(tmp_path / "store.db")
    if request.param == "postgresql":
        url = request.getfixturevalue("postgresql")
        with create_engine(url).begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
    made = Cluster(tmp_path, url)
    yield made
    made.close()


def table(summary: StudySummary) -> list[tuple[object, ...]]:
    assert summary.baseline is not None
    every = (summary.baseline, *summary.evaluations)
    return sorted(
        (e.ask, e.key or "", e.status, e.reason, e.accuracy, e.latency_ratio) for e in every
    )


def expected(folder: Path, evaluations: int) -> list[tuple[object, ...]]:
    """The table of one process that nothing disturbed."""
    with Store.open(str(folder / "alone.db")) as store:
        settings = StudySettings(evaluations=evaluations, seed=11)
        study = Study.create(store, "study", settings, FakeSpace(2 * evaluations))
        run(study, FakeEvaluator())
        return table(store.summary("study"))


def check_log(summary: StudySummary) -> None:
    """Each proposal was answered once."""
    told = [e.data["ask"] for e in summary.events if e.kind == "told"]
    asked = [e.data["ask"] for e in summary.events if e.kind == "asked"]
    assert asked == list(range(len(asked)))
    assert sorted(told) == asked
    assert summary.open_asks == ()


def test_killed_workers_and_drivers_change_nothing(cluster, tmp_path):
    moments = random.Random(SEED)
    cluster.start("driver", "drive")
    for name in ("one", "two"):
        cluster.start(name, "work")
    for victim in ("one", "driver", "two", "driver"):
        cluster.wait_for(cluster.begun() + moments.randint(2, 4))
        time.sleep(moments.uniform(0, cluster.seconds))
        cluster.kill(victim)
        cluster.start(victim, "drive" if victim == "driver" else "work")
    assert cluster.end("driver") == "evaluations"
    summary = cluster.summary()
    check_log(summary)
    assert table(summary) == expected(tmp_path, EVALUATIONS), f"seed {SEED}"


@pytest.mark.slow
def test_a_hundred_kills_of_workers_and_drivers_change_nothing(cluster, tmp_path):
    moments = random.Random(SEED)
    cluster.evaluations = 150
    cluster.start("driver", "drive")
    names = ("one", "two", "three")
    for name in names:
        cluster.start(name, "work")
    for kill in range(100):
        victim = moments.choice((*names, "driver"))
        if cluster.running[victim].poll() is not None:
            break  # the driver is done
        time.sleep(moments.uniform(0, 1.0))
        if kill % 10 == 0:  # it goes on at times, however often it is killed
            cluster.wait_for(cluster.begun() + 2)
        cluster.kill(victim)
        cluster.start(victim, "drive" if victim == "driver" else "work")
    assert cluster.end("driver") == "evaluations"
    summary = cluster.summary()
    check_log(summary)
    assert table(summary) == expected(tmp_path, 150), f"seed {SEED}"


@pytest.mark.slow
def test_a_killed_database_loses_nothing_that_was_stored(tmp_path):
    with server() as database:
        database.start(durable=True)
        try:
            cluster = Cluster(tmp_path, database.url)
            cluster.start("driver", "drive")
            for name in ("one", "two"):
                cluster.start(name, "work")
            for _ in range(2):
                cluster.wait_for(cluster.begun() + 4)
                database.kill()
                time.sleep(1.0)
                database.start(durable=True)
            assert cluster.end("driver") == "evaluations"
            summary = cluster.summary()
            check_log(summary)
            assert table(summary) == expected(tmp_path, EVALUATIONS)
        finally:
            cluster.close()
            database.stop()
