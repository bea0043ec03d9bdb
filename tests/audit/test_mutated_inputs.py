"""Mutated inputs to every public entry: a result or a UserError, in time and in memory.

`SYNO_AUDIT_INPUTS` is the number of inputs to each entry in the long run, `SYNO_AUDIT_SEED` the
seed; a failure names both and the input.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.audit import mutations, runs, worker
from tests.audit.entries import ENTRIES

from syno import UserError

SEED = int(os.environ.get("SYNO_AUDIT_SEED", "15"))
COUNT = int(os.environ.get("SYNO_AUDIT_INPUTS", "10000"))
FEW = 4


@pytest.mark.slow
# Names alone: with torch, what a mark holds outlives Python, and extensions report it as a leak.
@pytest.mark.parametrize("name", [*ENTRIES])
def test_ten_thousand_mutated_inputs_give_a_result_or_a_user_error(
    name: str, tmp_path: Path
) -> None:
    count = COUNT // ENTRIES[name].share
    print(f"{name}: seed {SEED}, {count} inputs")
    found = runs.run(name, SEED, count, tmp_path)
    assert not found.counts, f"\n{found.text(SEED)}"


def test_some_mutated_inputs_of_every_entry_give_a_result_or_a_user_error(tmp_path: Path) -> None:
    text = runs.run_few(list(ENTRIES), SEED, FEW, tmp_path)
    assert not text, f"\n{text}"


def _fragile(value: str) -> None:
    if "9" * 5000 in value:
        raise ValueError("too long")
    if value.startswith("x"):
        raise UserError("begins with x")


def test_a_failure_is_found_and_made_small() -> None:
    value = "abc" * 40 + "9" * 5000 + "def" * 40
    error = worker.failure(_fragile, value)
    assert error is not None
    kind = worker.signature(error)
    assert kind.startswith("ValueError in ")
    assert len(worker.shrunk(_fragile, value, kind)) < len(value) - 100
    assert worker.failure(_fragile, "xyz") is None
    assert worker.failure(_fragile, "abc") is None


def test_an_input_is_a_function_of_entry_seed_and_number() -> None:
    text = "syno operator 1\nout [N, C_out]\n"
    one, same, other = (
        [mutations.mutated_text(text, worker.stream("entry", seed, n)) for n in range(50)]
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other
    assert len(set(one)) > 40
