"""A driver and workers with fake answers in processes of their own, and what they must store."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import create_engine, text

from study.fakes import FakeEvaluator, FakeSpace
from syno.store import Store, StudySummary
from syno.study import Study, StudySettings, run

SCRIPT = Path(__file__).with_name("fake_workers.py")
EVALUATIONS = 24
SPACE = 1000  # operators
SEED = 11  # of the study
WAIT_S = 600.0  # for progress, on a machine that has other work


@dataclass
class Cluster:
    """A driver and workers of `fake_workers.py` on one store.

    mischief: what workers do beside their work, by name: see there.
    """

    folder: Path
    url: str
    evaluations: int = EVALUATIONS
    seconds: float = 0.1
    method: str = "uniform"
    idle: float = 30.0
    mischief: dict[str, str] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def start(self, name: str) -> None:
        """Start the driver or a worker."""
        arguments = {
            "role": "drive" if name == "driver" else "work",
            "store": self.url,
            "trace": str(self.folder / "trace"),
            "evaluations": self.evaluations,
            "space": SPACE,
            "seed": SEED,
            "seconds": self.seconds,
            "method": self.method,
            "idle": self.idle,
            "mischief": self.mischief.get(name, ""),
        }
        command = [sys.executable, str(SCRIPT), json.dumps(arguments)]
        self.running[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def kill(self, name: str) -> bool:
        """Kill a process; return whether it was still running."""
        process = self.running.pop(name)
        process.kill()
        process.communicate(timeout=60)
        assert process.returncode in (0, -signal.SIGKILL)
        return process.returncode != 0

    def end(self, name: str) -> str:
        """Wait for the end of a process, and return what it said."""
        process = self.running.pop(name)
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        return said.strip()

    def close(self) -> None:
        for process in self.running.values():
            process.kill()
            process.communicate()

    def goes_on(self) -> None:
        """If the driver has come to its end, let it go on with more evaluations."""
        if self.running["driver"].poll() is not None:
            assert self.end("driver") == "evaluations"
            self.evaluations += EVALUATIONS
            self.start("driver")

    def begun(self) -> int:
        """Count the evaluations that began."""
        trace = self.folder / "trace"
        if not trace.exists():
            return 0
        return sum(line.startswith("begin") for line in trace.read_text().splitlines())

    def wait_for(self, begun: int) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.begun() < begun:
            assert time.monotonic() < deadline, self.state()
            self.goes_on()
            time.sleep(0.01)

    def state(self) -> str:
        """Who is there, and what waits."""
        with Store.open(self.url, read_only=True) as store:
            study = store.study()
            running = {name: process.poll() for name, process in self.running.items()}
            there = [(w.short_name, w.ask) for w in store.workers() if w.is_alive]
            return f"{running}, {there}, {store.open_proposals(study)}"

    def summary(self) -> StudySummary:
        with Store.open(self.url, read_only=True) as store:
            return store.summary("study")


def emptied(url: str) -> None:
    """Make a PostgreSQL database empty."""
    with create_engine(url).begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))


def table(summary: StudySummary) -> list[tuple[object, ...]]:
    assert summary.baseline is not None
    every = (summary.baseline, *summary.evaluations)
    return sorted(
        (e.ask, e.key or "", e.status, e.reason, e.accuracy, e.latency_ratio) for e in every
    )


def expected(folder: Path, evaluations: int) -> list[tuple[object, ...]]:
    """The table of one process that nothing disturbed."""
    with Store.open(str(folder / "alone.db")) as store:
        settings = StudySettings(evaluations=evaluations, seed=SEED)
        study = Study.create(store, "study", settings, FakeSpace(SPACE))
        run(study, FakeEvaluator())
        return table(store.summary("study"))


def check_log(summary: StudySummary) -> None:
    """Each proposal was answered once."""
    told = [e.data["ask"] for e in summary.events if e.kind == "told"]
    asked = [e.data["ask"] for e in summary.events if e.kind == "asked"]
    assert asked == list(range(len(asked)))
    assert sorted(told) == asked
    assert summary.open_asks == ()
