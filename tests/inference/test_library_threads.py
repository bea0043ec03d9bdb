"""A network library under the sanitizers, with as many threads as a system gives it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from syno.codegen.export import export_network
from syno.codegen.native import find_compiler

PROGRAM = Path(__file__).with_name("threads_of_library.cpp")
SHAPE = (4, 6, 5)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


class Mixed(nn.Module):
    """Layers with panels, a residual, a convolution of channels, and functions that are none."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(4, 12, 3, padding=1)
        self.each = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.second = nn.Conv2d(12, 12, 3, padding=1)
        self.head = nn.Linear(12, 7)

    def forward(self, x):
        """Scores."""
        x = F.relu(self.first(x))
        x = F.gelu(self.second(self.each(x)) + x)
        x = F.softmax(F.max_pool2d(x, 2, 1), -1)
        return self.head(x.mean((2, 3)))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The network, and a program with its library, built with the sanitizers."""
    torch.manual_seed(0)
    net = Mixed().eval()
    folder = tmp_path_factory.mktemp("threads")
    files = export_network(net, folder / "net", torch.zeros(1, *SHAPE), format="cpp-network")
    compiler = find_compiler()
    if not compiler.threads:
        pytest.skip("the compiler builds no OpenMP programs")
    flags = ["-std=c++17", "-O1", "-march=native", "-fopenmp", *SANITIZERS, f"-I{folder}"]
    program = folder / "program"
    command = [compiler.path, *flags, str(files.code), str(PROGRAM), "-o", str(program)]
    subprocess.run(command, check=True)
    return net, [program, files.weights]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, None])
def test_it_touches_its_own_memory_alone_whatever_threads_the_system_gives(library, limit):
    net, command = library
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    if limit is not None:
        environment["OMP_THREAD_LIMIT"] = str(limit)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=300
    )
    assert done.stdout == "right\n", f"{done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    x = np.arange(5 * np.prod(SHAPE)) % 17 * 0.25 - 2.0
    with torch.no_grad():
        expected = net(torch.from_numpy(x.astype(np.float32)).reshape(5, *SHAPE))
    found = torch.tensor([float(line) for line in done.stderr.split()]).reshape(expected.shape)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
