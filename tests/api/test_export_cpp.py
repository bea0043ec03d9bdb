"""Exported C++: compiled and run without Syno, and linked into a program."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from syno import UserError
from syno.codegen.export import formats
from syno.codegen.export.programs import examples
from syno.codegen.export.write import operator_subject
from syno.codegen.native import find_compiler, no_compiler
from syno.codegen.verify.random_cases import random_case
from syno.operators import zoo

COMPILER = next((c for c in map(shutil.which, ("g++", "clang++", "c++")) if c), None)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")

# Reads the weights and x, writes y; two operators are linked into it.
PROGRAM = """
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "first.h"
#include "second-op.h"

std::vector<float> read(const char* path) {
  std::vector<float> values;
  std::FILE* file = std::fopen(path, "rb");
  for (float value; std::fread(&value, sizeof value, 1, file) == 1;) values.push_back(value);
  std::fclose(file);
  return values;
}

int main(int count, char** words) {
  const std::vector<float> weights = read("first.bin"), x = read("x.bin");
  std::vector<const float*> pointers;
  std::size_t begin = 0;
  for (int i = 1; i < count; ++i) {
    pointers.push_back(weights.data() + begin);
    begin += std::strtoul(words[i], nullptr, 10);
  }
  std::vector<float> packed(syno_first_packed_size()), scratch(syno_first_workspace_size(1));
  syno_first_pack(pointers.data(), packed.data());
  std::vector<float> y(OUTPUTS);
  syno_first_run(x.data(), packed.data(), y.data(), scratch.data(), 3, 1);
  std::fwrite(y.data(), sizeof(float), y.size(), stdout);
  return syno_second_op_packed_size() < 0;
}
"""


def subject(name: str):
    return operator_subject(zoo.load(name), zoo.binding(name), seed=3)


@pytest.mark.parametrize("name", ["conv2d", "operator-1", "pixel-shuffle", "linear"])
def test_it_is_compiled_and_checked_without_syno(name, tmp_path):
    chosen = formats.get("cpp")
    written = chosen.write(subject(name), tmp_path / "op")
    assert [path.name for path in written.files] == ["op.cpp", "op.bin", "op.h"]
    run = chosen.check(written, subject(name))
    assert run.passed, run.output
    assert "at batch sizes 1, 3, 8" in run.output


def test_other_weights_are_noticed(tmp_path):
    chosen = formats.get("cpp")
    written = chosen.write(subject("conv2d"), tmp_path / "op")
    weights = np.fromfile(written.weights, np.float32)
    (weights + np.float32(0.01)).tofile(written.weights)
    run = chosen.check(written, subject("conv2d"))
    assert not run.passed
    assert "of the largest output" in run.output


def test_an_operator_without_a_batch(tmp_path):
    seed = next(s for s in range(100) if random_case(s).case.operator.batch is None)
    operator, binding = random_case(seed).case
    found = operator_subject(operator, binding, seed=0)
    written = formats.get("cpp").write(found, tmp_path / "op")
    run = formats.get("cpp").check(written, found)
    assert run.passed, run.output


def test_two_operators_are_linked_into_a_program(tmp_path):
    chosen, first = formats.get("cpp"), subject("operator-1")
    written = chosen.write(first, tmp_path / "first.cpp")
    second = chosen.write(subject("conv2d"), tmp_path / "second-op")
    x, expected = next((x, y) for (x,), y in examples(first) if len(x) == 3)
    x.numpy().tofile(tmp_path / "x.bin")
    program = tmp_path / "program.cpp"
    program.write_text(PROGRAM.replace("OUTPUTS", str(expected.numel())))
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"]
    sources = [str(path) for path in (program, written.code, second.code)]
    subprocess.run([COMPILER, *flags, *sources, "-o", "program"], cwd=tmp_path, check=True)
    sizes = [str(parameter.numel()) for parameter in first.module.parameters()]
    done = subprocess.run(["./program", *sizes], cwd=tmp_path, check=True, capture_output=True)
    y = torch.from_numpy(np.frombuffer(done.stdout, np.float32).copy()).view(expected.shape)
    torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(no_compiler() is not None or not find_compiler().threads, reason="no OpenMP")
def test_it_runs_with_any_number_of_threads_and_touches_its_own_memory_alone(tmp_path):
    """Numbers out of range count as the nearest, and OpenMP may give fewer than it is asked for."""
    operator, binding = zoo.load("conv2d"), "N=1, C_in=8, C_out=12, H=12, W=9, k=3"
    written = formats.get("cpp").write(operator_subject(operator, binding, 0), tmp_path / "op.cpp")
    shapes = operator.shapes(binding)
    sizes = {"INPUTS": shapes.input, "OUTPUTS": shapes.output, "WEIGHTS": shapes.weights[0]}
    flags = ["-std=c++17", "-O1", "-march=native", "-fopenmp", *SANITIZERS, f"-I{tmp_path}"]
    flags += [f"-D{name}={math.prod(shape)}" for name, shape in sizes.items()]
    sources = [str(written.code), str(Path(__file__).with_name("threads_of_kernel.cpp"))]
    subprocess.run([COMPILER, *flags, *sources, "-o", "program"], cwd=tmp_path, check=True)
    for limit in (None, "1", "2"):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OMP_")}
        environment |= {} if limit is None else {"OMP_THREAD_LIMIT": limit}
        done = subprocess.run(
            ["./program"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.stdout == "right\n", f"{done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"


# C_out is so large against the rank that the product of both weights is cheaper.
FOLDING = {"N": 1, "C_in": 32, "C_out": 192, "H": 6, "g": 8, "s": 2, "k": 3}


@pytest.mark.parametrize("fold_weights", [False, True])
def test_weights_are_folded_where_that_is_asked_for(fold_weights, tmp_path):
    operator = zoo.load("operator-1")
    chosen = formats.get("cpp", fold_weights=fold_weights)
    given = operator_subject(operator, FOLDING, 3, fold_weights=fold_weights)
    written = chosen.write(given, tmp_path / "op")
    run = chosen.check(written, given)
    assert run.passed, run.output
    plan = operator.plans(FOLDING, 1, fold_weights=fold_weights)[0]
    assert (plan.fold_macs > 0) == fold_weights
    assert f"{plan.macs:,} MACs" in written.code.read_text()
    # The file of weights is the same: folding is done by the packing.
    sizes = [np.prod(shape) for shape in operator.weight_shapes(FOLDING)]
    assert written.weights.stat().st_size == 4 * sum(sizes)


def test_a_plan_is_written_by_its_number(tmp_path):
    operator = zoo.load("conv2d")
    sizes = {"N": 1, "C_in": 8, "C_out": 8, "H": 6, "W": 6, "k": 3}
    chosen = formats.get("cpp")
    texts = set()
    for number in (1, 3):
        given = operator_subject(operator, sizes, 3, number)
        written = chosen.write(given, tmp_path / "op")
        assert chosen.check(written, given).passed
        texts.add(written.code.read_text())
    assert len(texts) == 2


def test_the_compiler_is_that_of_cxx(tmp_path, monkeypatch):
    find_compiler.cache_clear()
    called = tmp_path / "called"
    wrapper = tmp_path / "my-c++"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {called}\nexec {COMPILER} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    chosen = formats.get("cpp")
    written = chosen.write(subject("conv2d"), tmp_path / "op")
    run = chosen.check(written, subject("conv2d"))
    assert run.passed, run.output
    assert "both.cpp" in called.read_text()
    find_compiler.cache_clear()
    monkeypatch.setenv("CXX", "no-such-compiler")
    run = chosen.check(written, subject("conv2d"))
    assert (run.passed, "there is no C++ compiler 'no-such-compiler'" in run.output) == (
        False,
        True,
    )
    with pytest.raises(UserError, match="there is no C\\+\\+ compiler 'no-such-compiler'"):
        formats.get("aoti")
    find_compiler.cache_clear()
