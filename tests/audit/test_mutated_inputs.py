"""Mutated inputs to every public entry: a result or a UserError, in time and in memory.

`SYNO_AUDIT_INPUTS` is the number of inputs to each entry in the long run, `SYNO_AUDIT_SEED` the
seed; a failure names both and the input.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.audit import runs
from tests.audit.entries import ENTRIES

SEED = int(os.environ.get("SYNO_AUDIT_SEED", "15"))
COUNT = int(os.environ.get("SYNO_AUDIT_INPUTS", "10000"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ENTRIES)
def test_ten_thousand_mutated_inputs_give_a_result_or_a_user_error(
    name: str, tmp_path: Path
) -> None:
    print(f"{name}: seed {SEED}, {COUNT} inputs")
    found = runs.run(name, SEED, COUNT, tmp_path)
    assert not found.counts, f"\n{found.text(name, SEED)}"
