"""Timing of kernels: checked code only, and no time that the machine cannot reach."""

from __future__ import annotations

import json

import numpy as np
import pytest

import syno
from syno import native, zoo
from syno.measure import kernels, roofline, timing


def test_a_time_below_the_roofline_is_refused():
    machine = roofline.Roofline(2, 1e11, (roofline.Level(2**20, 1e10), roofline.Level(2**25, 1e9)))
    assert machine.floor(10**9, 0) == pytest.approx(0.02)
    assert machine.floor(0, 2**20) == pytest.approx(2**20 / 1e10)
    assert machine.floor(0, 2**24) == pytest.approx(2**24 / 1e9)
    slower = roofline.Roofline(2, 9e10, (roofline.Level(2**20, 2e10), roofline.Level(2**25, 1e8)))
    best = machine.faster_of(slower)
    assert (best.flops, best.levels[0].bytes_per_s, best.levels[1].bytes_per_s) == (1e11, 2e10, 1e9)
    assert roofline.checked_time("kernel", 0.02, 0.02) == 0.02
    with pytest.raises(roofline.ImpossibleTimeError, match=r"kernel: 10\.0000 ms is less than"):
        roofline.checked_time("kernel", 0.01, 0.02)


def test_the_roofline_of_this_machine_is_one():
    machine = roofline.measure_roofline(1)
    assert machine.flops > 1e9
    assert all(level.bytes_per_s > 1e8 for level in machine.levels)
    with pytest.raises(syno.UserError, match="'threads' is an integer of at least 1, got 0"):
        roofline.measure_roofline(0)


def test_wrong_code_is_not_timed():
    operator = zoo.load("conv2d")
    binding = kernels.sizes(operator, 32, 7, 1)
    function = native.compile_operator(operator, binding)
    timing.check_native("conv2d", operator, binding, function, 1)
    pack = function.pack
    function.pack = lambda weights: pack([np.flip(weight, -1) for weight in weights])
    with pytest.raises(syno.UserError, match="the compiled code of conv2d is wrong: y"):
        timing.check_native("conv2d", operator, binding, function, 1)


def test_kernels_are_timed_beside_the_convolution():
    chosen = {name: zoo.load(name) for name in ("operator-2", "depthwise")}
    run = kernels.bench_kernels(
        chosen,
        bindings={"64@7": kernels.bindings_of(chosen, 64, 7, 2)},
        threads=1,
        rounds=20,
        torch_forms=["eager"],
        convolutions={"64@7": (64, 7)},
    )
    found = {time.kernel: time for time in run.times}
    assert set(found) == {
        "operator-2 cpp",
        "operator-2 eager",
        "depthwise cpp",
        "depthwise eager",
        "torch conv2d",
    }
    own = found["operator-2 cpp"]
    assert own.batch == 2
    assert own.outputs > 0
    assert 0 < own.roofline < roofline.SLACK
    assert own.speedup > 0
    assert found["torch conv2d"].roofline is None
    ratio = found["torch conv2d"].best_ms / own.best_ms
    assert run.speedup("operator-2 cpp", 2) == pytest.approx(ratio)
    assert json.dumps(run.control_spread)


def test_every_operator_of_the_zoo_has_sizes_in_a_layer():
    operators = {name: zoo.load(name) for name in zoo.names()}
    assert set(kernels.bindings_of(operators, 64, 56, 1)) == set(operators)
