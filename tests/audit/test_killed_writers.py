"""A process that is killed while it writes leaves no damage behind: a check that calls its store
damaged would be as bad as one that says nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from syno.store import Store

SEED = int(os.environ.get("SYNO_KILL_SEED", "1"))
KILLS = int(os.environ.get("SYNO_KILLS", "60"))
# Rows of several pages, so that transactions have many frames and the log begins anew now and then.
WRITER = """
import sys
from syno.store import Store
with Store.open(sys.argv[1]) as store:
    study = store.studies()[0] if store.studies() else store.create_study(
        "study", specification=("5bec", {}), settings={}, seed=1)
    while True:
        number = store.append_event(study, "note", {"long": "x" * 30000})
        print(number, flush=True)
"""


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_a_store_that_is_whole(tmp_path: Path) -> None:
    path, rng, told = tmp_path / "store.db", random.Random(SEED), 0
    for kill in range(KILLS):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        told = int(process.stdout.readline())
        time.sleep(rng.uniform(0, 0.2))
        process.send_signal(signal.SIGKILL)
        told = max([told, *(int(line) for line in process.stdout.read().split())])
        process.wait()
        with Store.open(str(path), read_only=True) as store:  # DamagedError where it is not whole
            events = store.events(store.study())
        assert len(events) >= told, f"seed {SEED}, kill {kill}"
    print(f"seed {SEED}: {KILLS} kills, {told} events, none lost")
