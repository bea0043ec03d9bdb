"""The kernels of bench/gpu, which are written by hand, where no GPU is."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# As in tests of the emitter: `make check-all` installs the package, `make test` does not.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton is not installed"
)
FOLDER = Path(__file__).resolve().parents[2] / "bench" / "gpu"


def lines(script: str, **environment: str) -> list[str]:
    """What a script of bench/gpu prints; it must succeed."""
    run = subprocess.run(
        [sys.executable, str(FOLDER / script)],
        capture_output=True,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", **environment},
    )
    assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
    return run.stdout.splitlines()


def test_the_machine_code_is_pipelined_products_of_tensor_cores() -> None:
    found = [json.loads(line) for line in lines("machine_code.py")]
    assert [row["capability"] for row in found] == [80, 90, 90, 90]
    for row in found:
        products = "warp_group_products" if row["capability"] == 90 else "warp_products"
        assert row[products] > 0, row
        assert row["bulk_copies"] + row["copies"] > 0, row
        assert row["narrow_loads"] == row["local_bytes"] == 0, row


@pytest.mark.slow
def test_layers_are_right_in_the_interpreter() -> None:
    found = lines("layers.py", TRITON_INTERPRET="1")
    assert len(found) == 43 and all(": error " in line for line in found)


@pytest.mark.slow
def test_networks_are_right_in_the_interpreter() -> None:
    found = lines("networks.py", TRITON_INTERPRET="1")
    assert len(found) == 9 and all(": error " in line for line in found)
