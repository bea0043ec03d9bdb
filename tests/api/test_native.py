"""Compiled operators: values, the cache, errors."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import syno
from marks import slow_but
from syno.codegen import native
from syno.operators import zoo
from syno.runs.cache_folder import cache_folder

BINDING = {"N": 2, "C_in": 32, "C_out": 48, "H": 9, "W": 11, "g": 4, "s": 2, "k": 3, "C": 20}


def _integers(shape, seed=0):
    return np.random.default_rng(seed).integers(-3, 4, shape)


def _case(name):
    operator = zoo.load(name)
    sizes = {k: v for k, v in BINDING.items() if k in operator.variables}
    shapes = operator.shapes(sizes)
    weights = [_integers(shape, 1 + t) for t, shape in enumerate(shapes.weights)]
    return operator, sizes, _integers(shapes.input), weights


@pytest.mark.parametrize("compiler", [c for c in ("g++", "clang++") if shutil.which(c)])
@pytest.mark.parametrize("name", ["conv2d", "operator-1", "depthwise", "conv1x1"])
def test_equals_the_interpreter_with_any_compiler_and_number_of_threads(compiler, name):
    operator, sizes, x, weights = _case(name)
    function = native.compile_operator(operator, sizes, compiler=native.find_compiler(compiler))
    function.pack(weights)
    expected = operator.interpret(sizes, x, weights)
    for threads in (1, 2, 5):
        assert np.array_equal(function(x, threads), expected)
    more = np.concatenate([x, x[:1]])
    assert np.array_equal(function(more, 2)[2], expected[0])


@pytest.mark.parametrize("flags", [("-mavx2", "-mfma"), ("-msse2",)])
def test_equals_the_interpreter_with_other_vectors(flags):
    if "avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        pytest.skip("the processor has other vectors")
    operator, sizes, x, weights = _case("operator-1")
    plain = [flag for flag in native.compiler.FLAGS if not flag.startswith("-march")]
    function = native.compile_operator(operator, sizes, flags=[*plain, *flags])
    function.pack(weights)
    assert np.array_equal(function(x, 2), operator.interpret(sizes, x, weights))


def test_shows_nothing_but_its_interface():
    """Of static members that the loader sees it makes one in all libraries, if names are equal."""
    operator, sizes, *_ = _case("conv2d")
    function = native.compile_operator(operator, sizes)
    path = function._library._name
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True
    )
    shown = {line.split()[-1] for line in listed.stdout.splitlines()}
    parts = ("pack", "packed_size", "phase", "phase_count", "run", "workspace_size")
    assert shown == {f"syno_operator_{part}" for part in parts}


def test_folded_weights_give_the_same():
    operator, sizes, x, _ = _case("operator-1")
    sizes |= {"C_out": 192, "g": 8}
    shapes = operator.shapes(sizes)
    weights = [_integers(shape, 1 + t) for t, shape in enumerate(shapes.weights)]
    folded = operator.plans(sizes, 1, fold_weights=True)[0]
    function = native.compile_operator(operator, sizes, fold_weights=True)
    function.pack(weights)
    assert folded.fold_macs > 0
    assert np.array_equal(function(x), operator.interpret(sizes, x, weights))


@pytest.mark.parametrize(
    "first",
    slow_but(range(0, len(zoo.names()), 3), 0),
)
def test_touches_no_memory_but_its_own(first):
    # In a process of its own: a page that must not be touched kills it.
    script = Path(__file__).with_name("guarded_pages.py")
    names = zoo.names()[first : first + 3]
    result = subprocess.run(
        [sys.executable, script, *names], capture_output=True, text=True, check=False
    )
    assert result.stdout.split() == names, f"{result.returncode} {result.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("--small", 16), ("--pairs", 12)])
def test_layers_of_odd_sizes_touch_no_memory_but_their_own(kind, count):
    script = Path(__file__).with_name("guarded_pages.py")
    result = subprocess.run(
        [sys.executable, script, kind], capture_output=True, text=True, check=False
    )
    assert len(result.stdout.splitlines()) == count, f"{result.returncode} {result.stderr}"


def test_is_compiled_once(tmp_path, monkeypatch):
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path))
    operator, sizes, *_ = _case("conv1x1")
    native.compile_operator(operator, sizes, flags=[*native.compiler.FLAGS, "-O0"])
    (library,) = (cache_folder() / "native").glob("*.so")
    made = library.stat().st_mtime_ns
    native.compile_operator(operator, sizes, flags=[*native.compiler.FLAGS, "-O0"])
    assert [p.stat().st_mtime_ns for p in library.parent.glob("*.so")] == [made]


def test_a_damaged_library_is_made_again(tmp_path, monkeypatch):
    operator, sizes, x, weights = _case("conv1x1")
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path / "first"))
    native.compile_operator(operator, sizes)
    (library,) = (cache_folder() / "native").glob("*.so")
    # In another folder: a library that is loaded must not change under the process.
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path / "second"))
    damaged = cache_folder() / "native" / library.name
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(library.read_bytes()[:1000])
    damaged.with_suffix(".sum").write_bytes(library.with_suffix(".sum").read_bytes())
    function = native.compile_operator(operator, sizes)
    function.pack(weights)
    assert np.array_equal(function(x), operator.interpret(sizes, x, weights))


def test_mistakes_are_named(tmp_path, monkeypatch):
    operator, sizes, x, weights = _case("conv2d")
    function = native.compile_operator(operator, sizes)
    with pytest.raises(syno.UserError, match="no weights yet"):
        function(x)
    with pytest.raises(syno.UserError, match=r"weights of the wrong shapes(?s:.*)expected: \[\("):
        function.pack([weights[0][0]])
    function.pack(weights)
    with pytest.raises(
        syno.UserError, match=r"x of the wrong shape\n  expected: \['n', 32, 9, 11\]"
    ):
        function(x[:, :3])
    with pytest.raises(syno.UserError, match="'threads' is an integer of at least 1, got 0"):
        function(x, 0)
    with pytest.raises(syno.UserError, match=r"no C\+\+ compiler 'no-such-compiler'"):
        native.find_compiler("no-such-compiler")
    with pytest.raises(syno.UserError, match=r"cannot compile the code(?s:.*)error:"):
        native.find_compiler().library("int f( {")
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path / "file"))
    with pytest.raises(syno.UserError, match=r"cannot write compiled code(?s:.*)SYNO_CACHE"):
        native.compile_operator(operator, sizes)
