"""Network libraries under the sanitizers, with as many threads as a system gives them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.property import sanitized
from torch import nn

from marks import slow_but
from syno import models
from syno.codegen.export import export_network
from syno.codegen.native import find_compiler

from .test_library import SHAPE, Plain
from .test_products import SHAPE as PRODUCTS
from .test_products import Products

PROGRAM = Path(__file__).with_name("threads_of_library.cpp")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
BATCH = 5

pytestmark = [
    pytest.mark.usefixtures("one_torch_thread"),
    pytest.mark.skipif(not sanitized.available(), reason="no GCC with sanitizers"),
]


class Mixed(nn.Module):
    """Layers with panels, a residual, a convolution of channels, and functions that are none."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(6, 12, 3, padding=1)
        self.each = nn.Conv2d(12, 12, 3, padding=1, groups=12)
        self.second = nn.Conv2d(12, 12, 3, padding=1)
        self.head = nn.Linear(12, 7)

    def forward(self, x):
        """Scores."""
        x = F.relu(self.first(x))
        x = F.gelu(self.second(self.each(x)) + x)
        x = F.softmax(F.max_pool2d(x, 2, 1), -1)
        return self.head(x.mean((2, 3)))


def language():
    return models.build("gpt2-small", layers=1, width=32, heads=2, context=16)


@dataclass(frozen=True)
class Case:
    """A network. error: the largest, relative to the largest output."""

    build: object
    example: torch.Tensor
    layers: bool = True
    precision: str = "float32"
    error: float = 1e-5


CASES = {
    "mixed": Case(Mixed, torch.zeros(1, *SHAPE)),
    "bfloat16": Case(Mixed, torch.zeros(1, *SHAPE), precision="bfloat16", error=0.05),
    "plain": Case(Plain, torch.zeros(1, *SHAPE), layers=False),
    "products": Case(Products, torch.zeros(1, *PRODUCTS), layers=False),
    "language": Case(language, torch.zeros(1, 16, dtype=torch.int64), error=1e-4),
}
QUICK = "mixed"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Of each case that is asked for the network, and a program that was built with sanitizers."""
    made = {}

    def program(name):
        if name not in made:
            made[name] = _built(CASES[name], tmp_path_factory.mktemp(name))
        return made[name]

    return program


def _built(case, folder):
    torch.manual_seed(0)
    net = case.build().eval()
    files = export_network(
        net, folder / "net", case.example, format="cpp-network", precision=case.precision
    )
    element = "float" if case.example.is_floating_point() else "std::int64_t"
    flags = ["-std=c++17", "-O1", "-march=native", "-fopenmp", *SANITIZERS, f"-I{folder}"]
    flags += [f"-DELEMENT={element}", f"-DLAYERS={int(case.layers)}"]
    program = folder / "program"
    command = [find_compiler("g++").path, *flags, str(files.code), str(PROGRAM), "-o", str(program)]
    subprocess.run(command, check=True)
    return net, [program, files.weights]


def _check(net, command, case, limit):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
    if limit is not None:
        environment["OMP_THREAD_LIMIT"] = str(limit)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=600
    )
    assert done.stdout == "right\n", f"{done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    shape = (BATCH, *case.example.shape[1:])
    x = torch.arange(int(np.prod(shape))).reshape(shape) % 17
    if case.example.is_floating_point():
        x = x * 0.25 - 2.0
    with torch.no_grad():
        expected = net(x)
    found = torch.tensor([float(line) for line in done.stderr.split()]).reshape(expected.shape)
    worst = case.error * max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(found, expected, atol=worst, rtol=1e-5)


@pytest.mark.parametrize("limit", slow_but([1, 2, 3, 4, None], 3))
def test_it_touches_its_own_memory_alone_whatever_threads_the_system_gives(programs, limit):
    _check(*programs(QUICK), CASES[QUICK], limit)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 2, 3, 4, None])
@pytest.mark.parametrize("name", [name for name in CASES if name != QUICK])
def test_so_do_other_formats_inputs_and_everything_that_is_no_layer(programs, name, limit):
    _check(*programs(name), CASES[name], limit)
