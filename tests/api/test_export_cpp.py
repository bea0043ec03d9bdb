"""Exported C++: compiled and run without Syno, and linked into a program."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest
import torch

from syno import zoo
from syno.export import formats
from syno.export.programs import examples
from syno.export.write import operator_subject
from syno.verify.drawn import draw_case

COMPILER = next((c for c in map(shutil.which, ("g++", "clang++", "c++")) if c), None)
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
    seed = next(s for s in range(100) if draw_case(s).case.operator.batch is None)
    operator, binding = draw_case(seed).case
    found = operator_subject(operator, binding, seed=0)
    written = formats.get("cpp").write(found, tmp_path / "op")
    run = formats.get("cpp").check(written, found)
    assert run.passed, run.output


def test_two_operators_are_linked_into_a_program(tmp_path):
    chosen, first = formats.get("cpp"), subject("operator-1")
    written = chosen.write(first, tmp_path / "first.cpp")
    second = chosen.write(subject("conv2d"), tmp_path / "second-op")
    x, expected = next((x, y) for x, y in examples(first) if len(x) == 3)
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
