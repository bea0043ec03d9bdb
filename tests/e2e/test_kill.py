"""A search killed with `kill -9` loses no finished evaluation and repeats none."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from syno.store import Store, StudySummary

SCRIPT = Path(__file__).with_name("fake_search.py")
EVALUATIONS = 24
SECONDS = 0.03  # an evaluation
KILLS = 5
SEED = 20


def start(folder: Path) -> subprocess.Popen[bytes]:
    arguments = [folder / "store.db", folder / "trace", EVALUATIONS, SECONDS]
    return subprocess.Popen([sys.executable, str(SCRIPT), *map(str, arguments)])


def stored(folder: Path) -> StudySummary:
    with Store.open(str(folder / "store.db"), read_only=True) as store:
        return store.summary("study")


def lines(folder: Path) -> list[str]:
    trace = folder / "trace"
    return trace.read_text().splitlines() if trace.exists() else []


def begins(folder: Path) -> int:
    return sum(line.startswith("begin") for line in lines(folder))


def kill_after(folder: Path, begun: int, delay: float) -> None:
    """Starts the search and kills it `delay` seconds after it began `begun` evaluations."""
    begun += begins(folder)
    process = start(folder)
    deadline = time.monotonic() + 60
    while begins(folder) < begun:
        assert process.poll() is None, "the search ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    assert process.wait(timeout=10) == -signal.SIGKILL


def answers(summary: StudySummary) -> dict[str, tuple[str, str]]:
    found = (summary.baseline, *summary.evaluations) if summary.baseline else ()
    return {e.key or "baseline": (e.status, e.finished) for e in found}


def content(summary: StudySummary) -> list[tuple[object, ...]]:
    assert summary.baseline is not None
    return [
        (e.ask, e.kind, e.text, e.key, e.status, e.reason, e.accuracy, e.latency_ratio)
        for e in (summary.baseline, *summary.evaluations)
    ]


def test_a_search_killed_at_five_random_moments_goes_on_as_if_nothing_had_happened(tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    assert start(whole).wait(timeout=60) == 0
    expected = content(stored(whole))

    moments = random.Random(SEED)
    seen = 0
    told: dict[str, tuple[str, str]] = {}  # operator -> (answer, when it was stored)
    for kill in range(KILLS + 1):
        if kill < KILLS:
            kill_after(cut, moments.randint(2, 5), moments.uniform(0, 1.5 * SECONDS))
        else:
            assert start(cut).wait(timeout=60) == 0
        this_run = [line.split()[1] for line in lines(cut)[seen:] if line.startswith("begin")]
        assert not set(this_run) & set(told), f"a finished evaluation was repeated (seed {SEED})"
        summary = stored(cut)
        found = answers(summary)
        assert told.items() <= found.items(), f"an answer was lost or changed (seed {SEED})"
        assert len(found) > len(told)
        assert len(summary.open_asks) <= 1
        told, seen = found, len(lines(cut))
    final = stored(cut)

    assert begins(cut) <= len(expected) + KILLS  # at most one more for each kill
    assert content(final) == expected
    asked = [e.data["ask"] for e in final.events if e.kind == "asked"]
    answered = [e.data["ask"] for e in final.events if e.kind == "told"]
    assert asked == answered == list(range(len(expected)))
    assert [e.kind for e in final.events].count("resumed") == KILLS
