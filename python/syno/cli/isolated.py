"""Runs exported code in a process that cannot import Syno, and compares what it computes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_TIME_LIMIT = 120.0  # seconds; importing torch is most of it

# Runs in the other process. `-I` takes the working directory and PYTHON* away, and the finder
# refuses `syno` even where it is installed.
_PROGRAM = """
import importlib.abc, importlib.util, json, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "syno":
            raise ImportError("this process may not import syno")

sys.meta_path.insert(0, Refuse())
file, arrays, result = sys.argv[1:]
import numpy, torch
torch.set_num_threads(1)
spec = importlib.util.spec_from_file_location("exported", file)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
data = numpy.load(arrays)
network = module.SynoOperator()
weights = {name[7:]: torch.from_numpy(data[name]) for name in data.files if name[:7] == "weight:"}
if weights:
    parameters = dict(network.named_parameters())
    with torch.no_grad():
        for name, value in weights.items():
            parameters[name].copy_(value)
with torch.no_grad():
    numpy.save(result, network(torch.from_numpy(data["input"])).numpy())
print(json.dumps({"modules": sorted(n for n in sys.modules if n.partition(".")[0] == "syno")}))
"""


@dataclass(frozen=True)
class IsolatedRun:
    """Whether it ran, the largest difference from what was expected, or why it did not."""

    ran: bool
    max_error: float = float("inf")
    problem: str = ""


def run_without_syno(
    file: Path, x: np.ndarray, expected: np.ndarray, weights: dict[str, np.ndarray]
) -> IsolatedRun:
    """Run `SynoOperator` of `file` on `x` in a process without Syno and compare with `expected`.

    `weights` replace parameters by name. Differences are relative to the largest expected value.
    """
    import numpy as np

    with tempfile.TemporaryDirectory(prefix="syno-isolated-") as folder:
        arrays, result = Path(folder, "arrays.npz"), Path(folder, "result.npy")
        named = {f"weight:{name}": value for name, value in weights.items()}
        np.savez(arrays, input=x, **named)
        arguments = [str(file.resolve()), str(arrays), str(result)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", _PROGRAM, *arguments],
                capture_output=True,
                text=True,
                cwd=folder,
                env=environment,
                timeout=_TIME_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return IsolatedRun(False, problem=f"did not finish within {_TIME_LIMIT:.0f} s")
        if done.returncode != 0:
            return IsolatedRun(False, problem=done.stderr.strip().rpartition("\n")[2])
        loaded = json.loads(done.stdout)["modules"]
        if loaded:
            return IsolatedRun(False, problem=f"the code imported {', '.join(loaded)}")
        found = np.load(result)
    if found.shape != expected.shape:
        return IsolatedRun(False, problem=f"gave {found.shape}, expected {expected.shape}")
    scale = max(float(np.abs(expected).max()), 1e-12)
    return IsolatedRun(True, float(np.abs(found - expected).max()) / scale)
