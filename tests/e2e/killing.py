"""A search with fake answers in a process of its own, killed with `kill -9` at chosen moments."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("fake_search.py")
SECONDS = 0.03  # an evaluation


@dataclass(frozen=True)
class Search:
    """The search of `fake_search.py` with its store and its trace in `folder`."""

    folder: Path
    evaluations: int
    ladder: bool = False
    method: str = "diverse"
    objectives: tuple[str, ...] = ()
    url: str = ""  # of a store elsewhere
    seconds: float = SECONDS

    @property
    def store(self) -> Path:
        return self.folder / "store.db"

    def start(self, *, isolated: bool = False, **options: Any) -> subprocess.Popen[bytes]:
        """Begins it, or goes on with it. options: of Popen."""
        self.folder.mkdir(exist_ok=True)
        arguments = {
            "store": self.url or str(self.store),
            "trace": str(self.folder / "trace"),
            "evaluations": self.evaluations,
            "seconds": self.seconds,
            "ladder": self.ladder,
            "method": self.method,
            "objectives": self.objectives,
            "isolated": isolated,
        }
        given = [sys.executable, str(SCRIPT), json.dumps(arguments)]
        return subprocess.Popen(given, **options)

    def finish(self) -> None:
        assert self.start().wait(timeout=300) == 0

    def lines(self, what: str) -> list[str]:
        """What the evaluations wrote down: `begin` or `end`, operator, process."""
        trace = self.folder / "trace"
        lines = trace.read_text().splitlines() if trace.exists() else []
        return [line for line in lines if line.startswith(what)]

    def begun(self) -> list[str]:
        """The evaluations that were begun, in all processes so far."""
        return [line.split()[1] for line in self.lines("begin")]

    def kill_after(self, more: int, delay: float) -> None:
        """Starts it and kills it `delay` seconds after it began so many more evaluations."""
        wanted = len(self.begun()) + more
        process = self.start()
        deadline = time.monotonic() + 300
        while len(self.begun()) < wanted:
            assert process.poll() is None, "the search ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.001)
        time.sleep(delay)
        process.kill()
        assert process.wait(timeout=60) == -signal.SIGKILL
