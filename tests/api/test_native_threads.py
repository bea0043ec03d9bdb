"""One compiled operator called from several Python threads at once, and what is asked of arrays."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import syno
from syno._util.threads import MOST_THREADS
from syno.codegen import emitters, native
from syno.codegen.native import function as function_module
from syno.operators import zoo

# Its plan keeps tensors in the workspace.
OPERATOR = zoo.load("operator-1")
BINDING = {"N": 2, "C_in": 16, "C_out": 24, "H": 7, "g": 4, "s": 2, "k": 3}
BINDING = {name: size for name, size in BINDING.items() if name in OPERATOR.variables}
SHAPES = OPERATOR.shapes(BINDING)
PYTHON_THREADS = 8
CALLS = 200  # in each thread


def _integers(shape, seed):
    return np.random.default_rng(seed).integers(-3, 4, shape)


WEIGHTS = [[_integers(shape, 10 * n + t) for t, shape in enumerate(SHAPES.weights)] for n in (1, 2)]
XS = [_integers(SHAPES.input, seed).astype(np.float32) for seed in range(PYTHON_THREADS)]


@functools.cache
def _expected(number, which=0):
    """y of x `number` and weights `which`."""
    return OPERATOR.interpret(BINDING, XS[number], WEIGHTS[which])


def _function(weights=WEIGHTS[0]):
    function = native.compile_operator(OPERATOR, BINDING)
    function.pack(weights)
    return function


def _in_threads(work):
    """Runs work(number) in all threads at once; the first error is raised."""
    with ThreadPoolExecutor(PYTHON_THREADS) as pool:
        for done in [pool.submit(work, number) for number in range(PYTHON_THREADS)]:
            done.result()


def test_calls_from_several_threads_are_right():
    function = _function()
    expected = [_expected(number) for number in range(PYTHON_THREADS)]

    def work(number):
        for _ in range(CALLS // 2):
            for threads in (1, 2):
                assert np.array_equal(function(XS[number], threads), expected[number])

    _in_threads(work)


def test_run_into_from_several_threads_is_right():
    function = _function()
    expected = [_expected(number) for number in range(PYTHON_THREADS)]

    def work(number):
        y = np.empty(function.output_shape, np.float32)
        for _ in range(CALLS):
            y.fill(np.nan)
            function.run_into(XS[number], y)
            assert np.array_equal(y, expected[number])

    _in_threads(work)


def test_one_prepared_call_in_several_threads_leaves_the_right_result():
    """They write the same array, and so they take turns."""
    function = _function()
    expected = _expected(0)
    y = np.empty(function.output_shape, np.float32)
    call = function.prepared(XS[0], y, 2)
    rounds = threading.Barrier(PYTHON_THREADS)

    def work(_number):
        for _ in range(100):
            rounds.wait()
            call()
            rounds.wait()
            assert np.array_equal(y, expected)

    _in_threads(work)


def test_prepared_calls_may_be_interleaved():
    function = _function()
    ys = [np.empty(function.output_shape, np.float32) for _ in XS]
    calls = [function.prepared(x, y, 1) for x, y in zip(XS, ys, strict=True)]
    for call in [*calls, *reversed(calls)]:
        call()
    for number, y in enumerate(ys):
        assert np.array_equal(y, _expected(number))


def test_packing_tears_no_call():
    """Every result is that of the one weights or of the other, never of a mixture."""
    function = _function()
    expected = [_expected(0, which) for which in range(2)]
    seen = set()

    def work(number):
        done = 0
        while done < CALLS or len(seen) < 2:
            done += 1
            if number < 2:
                function.pack(WEIGHTS[number])
            else:
                y = function(XS[0])
                (which,) = (n for n, wanted in enumerate(expected) if np.array_equal(y, wanted))
                seen.add(which)

    _in_threads(work)


def test_a_prepared_call_takes_the_weights_of_the_last_pack():
    function = _function()
    y = np.empty(function.output_shape, np.float32)
    call = function.prepared(XS[0], y)
    for which in (1, 0, 1):
        function.pack(WEIGHTS[which])
        call()
        assert np.array_equal(y, _expected(0, which))


def test_the_same_code_with_weights_of_its_own():
    function = _function()
    other = function.with_weights(WEIGHTS[1])
    for of, which in ((function, 0), (other, 1), (function, 0)):
        assert np.array_equal(of(XS[0]), _expected(0, which))


@pytest.mark.parametrize("name", ["cpp", "pytorch"])
def test_one_function_of_an_emitter_with_other_weights_in_each_thread(name):
    case = emitters.Case(OPERATOR, BINDING)
    (function,) = emitters.get(name).build([case])
    given = [
        (x, [w.astype(np.float32) for w in WEIGHTS[number % 2]]) for number, x in enumerate(XS)
    ]
    expected = [_expected(number, number % 2) for number in range(PYTHON_THREADS)]

    def work(number):
        for _ in range(CALLS // 4):
            assert np.array_equal(function(*given[number]), expected[number])

    _in_threads(work)


def test_workspaces_are_bounded_and_what_they_hold_is_of_no_use(monkeypatch):
    made = []

    def counted(count):
        made.append(count)
        return aligned(count)

    aligned = function_module._aligned
    monkeypatch.setattr(function_module, "_aligned", counted)
    operator, binding = zoo.load("conv2d"), "N=1, C_in=64, C_out=16, H=28, W=28, k=3"
    function = native.compile_operator(operator, binding)
    function.pack([_integers((16, 64, 3, 3), 1)])
    x = _integers((1, 64, 28, 28), 2).astype(np.float32)
    expected = function(x)
    for threads in [1, 2, 3, 4, 5, 6] * 3:
        for _, _, workspace in function._idle:
            workspace.fill(np.nan)
        assert np.array_equal(function(x, threads), expected)
    assert function._workspace_size(6) > function._workspace_size(1)
    assert len(made) == 1 + 6, "the weights, and a workspace wherever none was large enough"
    together = threading.Barrier(2 * function_module._MOST_IDLE)

    def work():
        together.wait()
        for _ in range(20):
            function(x)

    with ThreadPoolExecutor(together.parties) as pool:
        for done in [pool.submit(work) for _ in range(together.parties)]:
            done.result()
    assert len(function._idle) <= function_module._MOST_IDLE


# --- what arrays must be --------------------------------------------------------------------------

# Code that writes where it must not may kill the process: the cases run in one of their own.
_GIVEN = """
import json, sys
import numpy as np
from syno.codegen import native
from syno.operators import zoo
function = native.compile_operator(zoo.load("conv1x1"), "N=1, C_in=8, C_out=16, H=6, W=6")
function.pack([np.ones((16, 8))])
x, y = np.ones((2, 8, 6, 6), np.float32), np.empty((2, 16, 6, 6), np.float32)
read_only = y.copy()
read_only.flags.writeable = False
shared = np.zeros(4096, np.float32)
bytes_ = np.zeros(4 * y.size + 1, np.uint8)[1:]
unaligned = bytes_.view(np.float32).reshape(y.shape)
for name, (call, _) in json.load(sys.stdin).items():
    try:
        eval(f"function.{call}")
        said = "nothing"
    except Exception as error:
        said = f"{type(error).__name__} {error}"
    print(json.dumps([name, said]), flush=True)
"""
CASES = {
    "an x of fewer images": (
        "run_into(x[:0].reshape(0, 8, 6, 6)[:, :3], y)",
        "x of the wrong shape",
    ),
    "an x of float64": ("run_into(x.astype(float), y)", "expected: float32      got: float64"),
    "an x of the other byte order": ("run_into(x.astype('>f4'), y)", "expected: float32"),
    "a Fortran-ordered x": (
        "run_into(np.asfortranarray(x), y)",
        "expected: C-contiguous memory      got: Fortran-contiguous memory",
    ),
    "every second x": (
        "run_into(np.ones((4, 8, 6, 6), np.float32)[::2], y)",
        "got: memory with strides (2304, 144, 24, 4)",
    ),
    "a list as x": ("run_into(x.tolist(), y)", "expected: a numpy array      got: list"),
    "a small y": (
        "run_into(x, y[:1])",
        "y of the wrong shape\n  expected: [2, 16, 6, 6]      got: [1, 16, 6, 6]",
    ),
    "a large y": ("run_into(x[:1], y)", "expected: [1, 16, 6, 6]      got: [2, 16, 6, 6]"),
    "a flat y": ("run_into(x, y.reshape(-1))", "expected: [2, 16, 6, 6]      got: [1152]"),
    "a y of float64": ("run_into(x, y.astype(float))", "y of the wrong type"),
    "a Fortran-ordered y": (
        "run_into(x, np.asfortranarray(y))",
        "y does not have the memory layout",
    ),
    "a y that must not be written": ("run_into(x, read_only)", "y is read-only"),
    "a y that is not aligned": ("run_into(x, unaligned)", "y is not aligned"),
    "x and y in one memory": (
        "run_into(shared[:576].reshape(x.shape), shared[100:1252].reshape(y.shape))",
        "x and y overlap",
    ),
    "a prepared call of a small y": ("prepared(x, y[:1])", "y of the wrong shape"),
    "a prepared call of no y": (
        "prepared(x, None)",
        "y is not an array\n  expected: a numpy array",
    ),
    "text": ("__call__('text')", "x does not contain numbers"),
    "complex numbers": ("__call__(x * 1j)", "expected: integers or floats      got: complex64"),
    "a ragged list": ("__call__([[1], [1, 2]])", "x is not an array"),
    "too few weights": ("pack([])", "expected: [(16, 8)]      got: []"),
    "weights that are text": ("pack(['text'])", "weight 0 does not contain numbers"),
    "weights that are none": ("pack(None)", "'weights' is a list with one array for each weight"),
    "too many threads": (
        "run_into(x, y, 100_000)",
        f"'threads' is an integer of at most {MOST_THREADS}, got 100000",
    ),
    "half a thread": ("run_into(x, y, 0.5)", "'threads' is an integer of at least 1, got 0.5"),
}


@pytest.fixture(scope="module")
def said():
    """What each case says, by name; the process ends at one that kills it."""
    result = subprocess.run(
        [sys.executable, "-c", _GIVEN],
        input=json.dumps(CASES),
        capture_output=True,
        text=True,
        check=False,
    )
    return dict(map(json.loads, result.stdout.splitlines())), f"{result.returncode} {result.stderr}"


@pytest.mark.parametrize("name", CASES)
def test_arrays_are_checked_before_memory_is_touched(name, said):
    answers, ended = said
    assert name in answers, f"the process ended with {ended}"
    assert answers[name].startswith("UserError "), answers[name]
    assert CASES[name][1] in answers[name]


def test_any_layout_goes_where_an_array_is_made():
    function = native.compile_operator(zoo.load("conv1x1"), "N=1, C_in=8, C_out=16, H=6, W=6")
    w, x = _integers((16, 8), 1), _integers((4, 8, 6, 6), 2)
    expected = np.einsum("oi,nihw->nohw", w, x)
    for weights in (w, np.asfortranarray(w), w.astype(">f8"), w.tolist()):
        function.pack([weights])
        for given in (x, np.asfortranarray(x), x.astype(np.float16), x.astype(">i2"), x.tolist()):
            assert np.array_equal(function(given), expected)
        read_only = x.astype(np.float32)
        read_only.flags.writeable = False
        assert np.array_equal(function(read_only[1:3]), expected[1:3])
    assert function(x[:0]).shape == (0, 16, 6, 6)


def test_the_largest_number_of_threads_is_right():
    function = native.compile_operator(zoo.load("conv1x1"), "N=1, C_in=8, C_out=16, H=6, W=6")
    function.pack([np.ones((16, 8))])
    assert (function(np.ones((1, 8, 6, 6)), MOST_THREADS) == 8).all()
    with pytest.raises(syno.UserError, match="expected: an integer from 1 to 512"):
        function(np.ones((1, 8, 6, 6)), MOST_THREADS + 1)
