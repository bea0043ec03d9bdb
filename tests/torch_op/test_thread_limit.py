"""Kernels inside PyTorch where OpenMP gives fewer threads than PyTorch asks for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import torch
from torch import nn
import syno

torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(16, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 24, 3, padding=1)
).eval()
compiled = syno.compile(net, torch.zeros(1, 16, 24, 24))
torch.set_num_threads(8)
with torch.inference_mode():
    for batch in (1, 3, 8, 11):
        x = torch.randn(batch, 16, 24, 24)
        for called in (compiled, compiled.network):
            torch.testing.assert_close(called(x), net(x), atol=1e-4, rtol=1e-4)
        assert compiled.layer_seconds(x) > 0
print("right")
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_results_do_not_depend_on_the_threads_that_the_system_gives(limit):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | {"OMP_THREAD_LIMIT": str(limit)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.stdout == "right\n", done.stderr[-3000:]
