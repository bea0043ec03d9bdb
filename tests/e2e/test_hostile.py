"""A search of twenty operators of which some do harm, itself killed twice, ends normally."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from syno.runs import processes
from syno.store import Store, StudySummary

from .hostile_search import HARM

pytestmark = pytest.mark.skipif(not processes.is_supported(), reason="needs Linux")

SCRIPT = Path(__file__).with_name("hostile_search.py")
EVALUATIONS = 20
AFTER = 6, 8  # the search is killed while these operators are evaluated; the 8th hangs


def start(folder: Path) -> subprocess.Popen[bytes]:
    arguments = [folder / "store.db", folder / "notes", EVALUATIONS]
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def notes(folder: Path) -> list[tuple[int, str]]:
    path = folder / "notes"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(int(pid), key) for pid, key in map(str.split, lines)]


def stored(folder: Path) -> StudySummary:
    with Store.open(str(folder / "store.db"), read_only=True) as store:
        return store.summary()


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def within(seconds: float, condition) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.slow
def test_a_search_among_harmful_operators_that_is_killed_twice_ends_normally(tmp_path):
    answered: dict[str, tuple[str, str]] = {}
    for number in AFTER:
        process = start(tmp_path)
        distinct = lambda: len({key for _, key in notes(tmp_path)})  # noqa: E731
        assert within(60, lambda: distinct() >= number or process.poll() is not None)  # noqa: B023
        assert process.poll() is None
        process.kill()
        assert process.wait() == -signal.SIGKILL
        # Nothing of it runs on: neither the process that forks nor the evaluation.
        assert within(10, lambda: all(gone(pid) for pid, _ in notes(tmp_path)))
        found = {e.key: (e.status, e.finished) for e in stored(tmp_path).evaluations}
        assert answered.items() <= found.items()
        answered = found
    before = len(notes(tmp_path))
    assert start(tmp_path).wait(timeout=120) == 0

    summary = stored(tmp_path)
    assert summary.stop_reason == "evaluations"
    assert summary.open_asks == ()
    found = {e.key: (e.status, e.finished) for e in summary.evaluations}
    assert answered.items() <= found.items()  # nothing is lost
    assert not {key for _, key in notes(tmp_path)[before:]} & set(answered)  # or repeated
    assert len(summary.evaluations) == len(found)
    assert sum(e.is_evaluated for e in summary.evaluations) == EVALUATIONS

    keys = list(dict.fromkeys(key for _, key in notes(tmp_path)))
    harmful = {keys[number - 1]: harm for number, harm in HARM.items()}
    kinds = {harmful[record.key]: record.kind for record in summary.quarantined}
    assert kinds == {"crash": "crash", "hang": "hang", "eat": "out_of_memory"}
    reasons = {harmful.get(e.key or ""): e for e in summary.evaluations}
    assert reasons["crash"].reason.startswith("crash: the process was ended by SIGSEGV")
    assert reasons["hang"].reason.startswith("hang: no result within 4 s")
    assert reasons["hang"].status == "timeout"
    assert reasons["eat"].details["peak_bytes"] > 0
    assert reasons["crash once"].status == "ok"
    good = [e for e in summary.evaluations if e.key not in harmful]
    assert {e.status for e in good} <= {"ok", "rejected"}
    assert within(10, lambda: all(gone(pid) for pid, _ in notes(tmp_path)))
