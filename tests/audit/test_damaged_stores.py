"""A damaged store is an error that says so, or it reads as it was: never another result.

With a damaged log beside it, it may read as it was at an earlier moment.

The audit that found 45 tracebacks and 29 silent differences among 400 damaged stores, kept. Each
failure names the seed and the number of the case: `SYNO_DAMAGE_SEED=S SYNO_DAMAGE_CASES=N` repeats.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from syno.store import Store, StudySummary

from .damage import KINDS
from .damaged_store import SILENT, Reading, compare, copy, is_earlier, readings
from .sample_store import make, make_with_log

SEED = int(os.environ.get("SYNO_DAMAGE_SEED", "1"))
CASES = int(os.environ.get("SYNO_DAMAGE_CASES", "400"))
QUICK_CASES = 15
QUICK = ("status", "show", "summary", "resume")


class Originals:
    """The undamaged stores, one with a log beside it (True), and what is read of them."""

    def __init__(self, folder: Path) -> None:
        self.paths = {False: folder / "whole.db", True: folder / "logged.db"}
        make(self.paths[False])
        make_with_log(self.paths[True], folder / "scratch.db")
        self.summaries = {logged: self._summary(folder, logged) for logged in self.paths}
        key = self.summaries[False].evaluations[0].key
        assert key is not None
        self.key = key
        self._readings: dict[tuple[bool, tuple[str, ...]], dict[str, Reading]] = {}

    def _summary(self, folder: Path, logged: bool) -> StudySummary:
        copy(self.paths[logged], folder / "look.db")
        with Store.open(str(folder / "look.db"), read_only=True) as store:
            return store.summary("search")

    def readings(self, folder: Path, logged: bool, names: tuple[str, ...]) -> dict[str, Reading]:
        if (logged, names) not in self._readings:
            found = readings(self.paths[logged], folder, self.key, *names)
            assert {reading.code for reading in found.values()} == {0}
            self._readings[logged, names] = found
        return self._readings[logged, names]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Originals:
    return Originals(tmp_path_factory.mktemp("originals"))


def damaged_alike(
    originals: Originals, folder: Path, seed: int, cases: int, *names: str
) -> Counter[str]:
    """Damages stores and fails where a reading is wrong; gives how many read as before."""
    rng = random.Random(seed)
    kinds = [kind for kind in KINDS for _ in range(kind[1])]
    found: Counter[str] = Counter()
    for case in range(cases):
        # Each kind of damage comes in a small run, too.
        damage, _, logged = KINDS[case] if case < len(KINDS) else rng.choice(kinds)
        target = folder / "damaged.db"
        copy(originals.paths[logged], target)
        what = damage(target, rng)
        expected = originals.readings(folder / "work", logged, names)
        got = readings(target, folder / "work", originals.key, *names)
        wrong = compare(expected, got)
        # SQLite leaves out what is damaged in its log: the store is as it was before.
        if logged and is_earlier(target, folder / "look.db", originals.summaries[logged]):
            wrong = [line for line in wrong if not line.endswith(SILENT)]
        assert not wrong, f"seed {seed}, case {case}, {what}:\n" + "\n".join(wrong)
        codes = {reading.code for reading in got.values()}
        found["the same" if codes == {0} else "damaged" if codes == {2} else "both"] += 1
    print(f"seed {seed}: {cases} damaged stores: {dict(found)}")
    return found


def test_a_damaged_store_is_refused_or_reads_as_it_was(originals, tmp_path):
    found = damaged_alike(originals, tmp_path, SEED, QUICK_CASES, *QUICK)
    assert found["damaged"] > QUICK_CASES / 3


@pytest.mark.slow
def test_400_damaged_stores(originals, tmp_path):
    found = damaged_alike(originals, tmp_path, SEED + 1, CASES)
    assert found["damaged"] > CASES / 3
