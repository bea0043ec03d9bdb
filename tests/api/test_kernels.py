"""Timing of kernels: checked code only, and no time that the machine cannot reach."""

from __future__ import annotations

import json

import numpy as np
import pytest

import syno
from syno.codegen import native
from syno.measure import kernels, roofline, timing
from syno.operators import zoo


def test_a_time_below_the_roofline_is_refused():
    machine = roofline.Roofline(2, 1e11, (roofline.Level(2**20, 1e10), roofline.Level(2**25, 1e9)))
    assert machine.floor(10**9, 0) == pytest.approx(0.02)
    assert machine.floor(0, 2**20) == pytest.approx(2**20 / 1e10)
    assert machine.floor(0, 2**24) == pytest.approx(2**24 / 1e9)
    # 8 MiB of each thread may lie in a cache that holds less than the 32 MiB that were measured.
    assert machine.least_time(0, 2**24) == pytest.approx(2**24 / 1e10)
    assert machine.least_time(0, 2**26) == pytest.approx(2**26 / 1e9)
    slower = roofline.Roofline(2, 9e10, (roofline.Level(2**20, 2e10), roofline.Level(2**25, 1e8)))
    best = machine.faster_of(slower)
    assert (best.flops, best.levels[0].bytes_per_s, best.levels[1].bytes_per_s) == (1e11, 2e10, 1e9)
    assert roofline.checked_time("kernel", 0.02, 0.02) == 0.02
    with pytest.raises(roofline.ImpossibleTimeError, match=r"kernel: 10\.0000 ms is less than"):
        roofline.checked_time("kernel", 0.01, 0.02)


@pytest.mark.parametrize("least", [None, 0])
def test_all_macs_count_unless_code_can_skip_some(least, monkeypatch):
    machine = roofline.Roofline(1, 1e9, (roofline.Level(2**20, 1e15),))
    monkeypatch.setattr(kernels, "reachable", lambda machine, *_: machine)
    run = kernels.KernelRun(1, 2, machine)
    made = kernels.Runner("kernel", lambda: None, 10**12, 1, True, 0, least_macs=least)
    if least is None:
        with pytest.raises(roofline.ImpossibleTimeError, match="less than this machine can do"):
            kernels.time_runners(run, "layer", 1, [made])
    else:
        kernels.time_runners(run, "layer", 1, [made])
        assert len(run.times) == 1


@pytest.mark.parametrize(("seconds", "is_possible"), [(0.7, True), (0.5, False)])
def test_rows_in_pairs_take_four_products_for_six(seconds, is_possible):
    machine = roofline.Roofline(1, 2e9, (roofline.Level(2**20, 1e15),))
    possible = machine.least_time(10**9, 0)
    if is_possible:
        assert roofline.checked_time("kernel", seconds, possible) < machine.floor(10**9, 0)
    else:
        with pytest.raises(roofline.ImpossibleTimeError):
            roofline.checked_time("kernel", seconds, possible)


def test_the_roofline_of_this_machine_is_one():
    machine = roofline.measure_roofline(1)
    assert machine.flops > 1e9
    assert all(level.bytes_per_s > 1e8 for level in machine.levels)
    with pytest.raises(syno.UserError, match="'threads' is an integer of at least 1, got 0"):
        roofline.measure_roofline(0)


def passes(*found: float):
    """What a measurement gives in one pass after the other, the last one for ever."""
    left = list(found)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_passes_of_the_peak_must_agree():
    measure = passes(16e9, 352e9, 350e9)
    assert roofline.stable("the peak", [353e9, 16e9], measure, 1e9, 3) == 353e9
    disagree = iter(1e9 * 1.2**i for i in range(200))
    with pytest.raises(roofline.UnstableRooflineError, match="the peak of this processor cannot"):
        roofline.stable("the peak", [1e9], lambda: next(disagree), 0.0, 3)


def test_a_peak_below_what_reading_did_is_refused():
    with pytest.raises(
        roofline.UnstableRooflineError,
        match=r"the best of 105 passes gave 16, 16, 16, 16\n.* that at least 58, as another",
    ):
        roofline.stable("the peak", [16e9] * 5, passes(16e9), 58e9, 3)
    assert roofline.stable("the peak", [16e9] * 5, passes(200e9), 58e9, 3) == 200e9


def test_bandwidth_is_that_of_memory_that_was_touched(monkeypatch):
    """Pages that nobody wrote to are one page of zeros in the cache, whatever their number."""
    seen = []

    class Read:
        argtypes = restype = None

        def __call__(self, pointer, floats, threads, passes, repeats):
            memory = np.ctypeslib.as_array(pointer, (floats * threads,))
            seen.append((floats * threads, bool((memory[:: 4096 // 8] != 0).all())))
            return 1e11

    class Peak:
        argtypes = restype = None

        def __call__(self, threads, rounds, repeats):
            return 1e12

    class Library:
        syno_peak_flops, syno_read_bytes = Peak(), Read()

    class Compiler:
        threads = True

        def library(self, source):
            return Library

    monkeypatch.setattr(roofline, "find_compiler", Compiler)
    machine = roofline.measure_roofline.__wrapped__(2)
    assert (machine.flops, machine.levels[-1].bytes_per_s) == (1e12, 1e11)
    assert max(floats for floats, _ in seen) * 4 == 2 * machine.levels[-1].bytes
    assert all(touched for _, touched in seen)


def order_of_calls(interleave, rounds):
    """Which of three calls is made when, the untimed ones of `timing` left out."""
    made = []
    interleave([lambda name=name: made.append(name) for name in "abc"], rounds)
    return made


def test_the_order_of_kernels_rotates_from_round_to_round():
    made = order_of_calls(timing.interleaved, 4)
    assert made[::2] == made[1::2]  # each is called once before it is timed
    assert "".join(made[::2]) == "abcbcacababc"


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
