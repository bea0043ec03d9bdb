"""The benchmark of loading rates runs, and both sides load every image."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="needs torchvision")
def test_the_benchmark_runs(tmp_path: Path) -> None:
    out = tmp_path / "data.json"
    sizes = ("--rounds", "1", "--small-images", "300", "--large-images", "40")
    command = [sys.executable, str(BENCH / "data_bench.py"), *sizes, "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    found = json.loads(out.read_text())
    kept = json.loads((BENCH / "results/data.json").read_text())
    for part in ("small", "large"):
        assert set(found[part]["loaders"]) == set(kept[part]["loaders"])
        assert all(rate["images_per_s"] > 0 for rate in found[part]["loaders"].values())
    assert set(found["augmentation_images_per_s"]) == set(kept["augmentation_images_per_s"])
