"""`bench/store_bench.py` with small numbers: what it fills is a whole store, and what it writes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from syno.store import Store

SCRIPT = Path(__file__).resolve().parents[3] / "bench" / "store_bench.py"


@pytest.mark.slow
def test_a_store_is_filled_and_used_by_several_processes(tmp_path):
    store, out = tmp_path / "bench.db", tmp_path / "out.json"
    options = {
        "--store": store,
        "--trials": 40,
        "--operators": 60,
        "--more": 400,
        "--workers": 2,
        "--seconds": 8,
        "--trial-seconds": 0.1,
        "--out": out,
    }
    given = [str(word) for option in options.items() for word in option]
    subprocess.run([sys.executable, str(SCRIPT), *given], check=True, timeout=600)
    found = json.loads(out.read_text())
    assert (found["trials"], found["operators"]) == (40, 60)
    assert found["bytes"] > 0
    assert found["fill"]["rows"] == 60 + 40 * 7 + 1  # operators; all rows of trials; an environment
    assert found["resume"]["seconds"] > 0
    for call in ("propose", "take", "tell"):
        times = found["shared"][call]
        assert times["count"] > 0
        assert 0 < times["p50_ms"] <= times["p99_ms"]
    assert found["machine"]["cores"] >= 1
    assert found["versions"]["syno"]
    told = found["shared"]["answers"]  # also before the window that times are of
    assert told >= found["shared"]["tell"]["count"]
    with Store.open(str(store), read_only=True) as opened:  # it checks every row
        study = opened.study()
        assert len(opened.evaluations(study)) == 40 + told
        assert len(opened.workers()) == 2
