"""No number of threads ends the process or fills the memory: there is one limit, with a message."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import syno
from syno._util.threads import MOST_THREADS
from syno._util.torch_threads import torch_threads
from syno.codegen import native
from syno.measure import choose_plan, kernels, latency, roofline, slots
from syno.operators import zoo

MANY = 100_000
BINDING = {"N": 1, "C_in": 8, "C_out": 8, "H": 6, "W": 6, "k": 3}
CONV = zoo.load("conv2d")
SPECIFICATION = syno.Specification(
    "[N, C_in: unordered, H]",
    "[N, C_out: unordered, H]",
    ["N: 0", "C_in: 1", "C_out: 1", "H: 0"],
    ["k=3: 1"],
    bindings=[{"C_in": 4, "C_out": 4, "H": 4}],
    passed_through=[(0, 0)],
    max_depth=3,
)


def _function(threads):
    function = native.compile_operator(CONV, BINDING)
    function.pack([np.ones(shape) for shape in function.weight_shapes])
    return function(np.ones(function.input_shape), threads)


def _torch(threads):
    with torch_threads(threads):
        pass


def _search(threads):
    timing = syno.TimingOptions(threads=threads)
    syno.search("no such model", "no such data", timing=timing)


CALLS = {
    "a compiled function": _function,
    "torch": _torch,
    "latency": lambda n: latency(nn.Linear(2, 2), (2,), threads=n),
    "choose_plan": lambda n: choose_plan(CONV, BINDING, threads=n),
    "bench_kernels": lambda n: kernels.bench_kernels({}, bindings={}, threads=n),
    "time_slots": lambda n: slots.time_slots(
        nn.Sequential(syno.Placeholder(BINDING, original=nn.Conv2d(8, 8, 3, padding=1))),
        {"conv2d": CONV},
        torch.ones(1, 8, 6, 6),
        threads=n,
    ),
    "roofline": roofline.measure_roofline,
    "search": _search,
    "Space.enumerate": lambda n: syno.Space.enumerate(SPECIFICATION, threads=n),
    "Space.sample": lambda n: syno.Space.enumerate(SPECIFICATION, threads=1).sample(
        2, stratify="macs", threads=n
    ),
    "walk": lambda n: syno.walk(SPECIFICATION, count=10, threads=n),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("threads", [MOST_THREADS + 1, MANY])
def test_more_threads_than_the_limit_are_a_mistake(name, threads):
    with pytest.raises(
        syno.UserError, match=rf"(?s)'threads' is .*{MOST_THREADS}.*got:? *{threads}"
    ):
        CALLS[name](threads)


def test_the_limit_of_compiled_searches_is_the_same():
    assert len(syno.Space.enumerate(SPECIFICATION, threads=MOST_THREADS)) > 0


def test_bandwidth_is_measured_in_memory_that_is_there(monkeypatch):
    monkeypatch.setattr(roofline, "_memory_of_machine", lambda: 1 << 30)
    with pytest.raises(
        syno.UserError,
        match=r"17 threads are too many to measure the bandwidth of this machine\n"
        r"  expected: at most 16, which read 32 MiB each      got: 17",
    ):
        roofline.measure_roofline.__wrapped__(17)
