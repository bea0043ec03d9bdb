"""An adaptation that is killed with `kill -9` finds what one does that is left alone."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from syno import UserError
from syno.store import Store

SEED, KILLS = 4, 10
TESTS = Path(__file__).parents[2]
# Findings that are times, and those of their fields.
TIMES = {"timed", "ratio", "delivered ratio", "layer seconds"}
FIELDS = {"latency_ms", "ratio", "predicted_ms", "seconds"}


def run(path: Path, *killed: object) -> int:
    """The exit code; killed: after how many findings, and how many seconds after them."""
    command = [sys.executable, "-m", "adaptation.pipeline.killed_adaptation", path, *killed]
    return subprocess.run([*map(str, command)], cwd=TESTS, timeout=600, check=False).returncode


def findings(path: Path) -> list[tuple[str, str, object]]:
    """What the store has, in its order."""
    if not path.is_file():
        return []
    try:
        with Store.open(str(path), read_only=True) as store:
            events = store.events(store.study("one")) if store.studies() else []
    except UserError as error:
        assert "it is empty" in str(error)  # it is made just now
        return []
    return [(e.data["what"], e.data["key"], e.data["value"]) for e in events if e.kind == "finding"]


@pytest.mark.slow
def test_an_adaptation_killed_at_ten_moments_finds_the_same_and_nothing_twice(tmp_path):
    whole, cut = tmp_path / "whole.db", tmp_path / "cut.db"
    assert run(whole) == 0
    expected = findings(whole)
    moments = random.Random(SEED)
    for place in sorted(moments.sample(range(1, len(expected)), KILLS)):
        before = findings(cut)
        assert run(cut, max(place, len(before) + 1), moments.uniform(0.0, 0.1)) == -signal.SIGKILL
        assert findings(cut)[: len(before)] == before, f"a finding was lost (seed {SEED})"
    assert run(cut) == 0
    found = findings(cut)
    keys = [(what, key) for what, key, _ in found]
    assert len(set(keys)) == len(keys)
    assert untimed(found) == untimed(expected)


def untimed(found: list[tuple[str, str, object]]) -> dict[tuple[str, str], object]:
    """Findings without what is measured, which differs from run to run."""
    return {(what, key): _untimed(value) for what, key, value in found if what not in TIMES}


def _untimed(value: object) -> object:
    if isinstance(value, dict):
        return {name: _untimed(each) for name, each in value.items() if name not in FIELDS}
    return [_untimed(each) for each in value] if isinstance(value, list) else value
