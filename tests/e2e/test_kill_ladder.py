"""A search with a ladder, killed with `kill -9`, prunes as one that was left alone."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from syno.store import Store
from syno.study import asha

SCRIPT = Path(__file__).with_name("fake_search.py")
EVALUATIONS = 14
SECONDS = 0.03  # an evaluation
KILLS = 2
SEED = 3


def start(folder: Path) -> subprocess.Popen[bytes]:
    arguments = [folder / "store.db", folder / "trace", EVALUATIONS, SECONDS, "ladder"]
    return subprocess.Popen([sys.executable, str(SCRIPT), *map(str, arguments)])


def begun(folder: Path) -> list[str]:
    trace = folder / "trace"
    lines = trace.read_text().splitlines() if trace.exists() else []
    return [line.split()[1] for line in lines if line.startswith("begin")]


def kill_after(folder: Path, more: int, delay: float) -> None:
    """Starts the search and kills it `delay` seconds after it began so many evaluations."""
    wanted = len(begun(folder)) + more
    process = start(folder)
    deadline = time.monotonic() + 60
    while len(begun(folder)) < wanted:
        assert process.poll() is None, "the search ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    assert process.wait(timeout=10) == -signal.SIGKILL


def results(folder: Path) -> list[tuple[object, ...]]:
    with Store.open(str(folder / "store.db"), read_only=True) as store:
        found = store.rung_results(store.study())
    return [(r.ask, r.kind, r.rung_index, r.status, r.accuracy) for r in found]


def decisions(folder: Path) -> set[tuple[int, int, str]]:
    """What became of each operator at each rung."""
    with Store.open(str(folder / "store.db"), read_only=True) as store:
        study = store.study()
        reached = {p.ask: p.rung_index for p in store.proposals(study)}
        told = [
            asha.Result(r.ask, r.rung_index, r.accuracy)
            for r in store.rung_results(study)
            if r.kind == "operator" and r.is_evaluated
        ]
    return {(ask, rung, what) for (ask, rung), what in asha.decisions(told, reached, 3).items()}


def test_a_ladder_killed_at_random_moments_takes_the_same_decisions(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    assert start(whole).wait(timeout=60) == 0
    assert {what for *_, what in decisions(whole)} == {"promoted", "stopped", "failed", "finished"}

    moments = random.Random(SEED)
    told: list[tuple[object, ...]] = []
    for _ in range(KILLS):
        kill_after(cut, moments.randint(4, 10), moments.uniform(0, 1.5 * SECONDS))
        now = results(cut)
        assert now[: len(told)] == told, f"a result was lost or changed (seed {SEED})"
        assert len(now) > len(told)
        told = now
    assert start(cut).wait(timeout=60) == 0

    assert results(cut) == results(whole), f"seed {SEED}"
    assert decisions(cut) == decisions(whole), f"seed {SEED}"
    assert len(begun(cut)) <= len(begun(whole)) + KILLS  # at most one more for each kill
    for folder in (whole, cut):
        assert not (folder / "store.db.checkpoints").exists()
