"""Exported code for TVM and Triton: runs without Syno, and notices other weights."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from syno.codegen import emitters
from syno.codegen.export import export, formats
from syno.codegen.export.write import operator_subject
from syno.operators import zoo

NAMES = ("triton", "tvm")
EMITTERS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            emitters.get(name).available() is not None, reason=str(emitters.get(name).available())
        ),
    )
    for name in NAMES
]


def subject(name: str):
    return operator_subject(zoo.load(name), zoo.binding(name), seed=3)


@pytest.mark.parametrize("name", EMITTERS)
@pytest.mark.parametrize(
    "operator", ["operator-1", pytest.param("pooled-conv", marks=pytest.mark.slow)]
)
def test_an_exported_operator_runs_and_checks_itself_without_syno(name, operator, tmp_path):
    chosen = formats.get(name)
    written = chosen.write(subject(operator), tmp_path / "op")
    assert written.code.name == "op.py"
    run = chosen.check(written, subject(operator))
    assert run.passed, run.output
    assert run.output.startswith("right: ")


@pytest.mark.slow
@pytest.mark.parametrize("name", EMITTERS)
def test_other_weights_are_noticed(name, tmp_path):
    chosen = formats.get(name)
    written = chosen.write(subject("conv2d"), tmp_path / "op.py")
    if name == "tvm":
        arrays = dict(np.load(written.weights))
        arrays["w0"] = arrays["w0"] + np.float32(0.01)
        np.savez(written.weights, **arrays)
    else:
        tensors = load_file(written.weights)
        tensors["w0"] += 0.01
        save_file(tensors, written.weights)
    run = chosen.check(written, subject("conv2d"))
    assert not run.passed
    assert "of its absolute terms" in run.output


@pytest.mark.slow
@pytest.mark.parametrize("name", EMITTERS)
def test_what_is_loaded_takes_other_batches(name, tmp_path):
    written = export(
        zoo.load("conv2d"), tmp_path / "op", binding=zoo.binding("conv2d"), format=name
    )
    code = {
        "tvm": "from tvm import te\nimport numpy as np\nimport op\n"
        "f = op.load(batch=te.var('batch', 'int32'))\n"
        "print([f(np.ones((n, 4, 5, 7), np.float32)).shape[0] for n in (1, 3, 8)])",
        "triton": "import op, torch\nf = op.load()\n"
        "print([f(torch.ones(n, 4, 5, 7)).shape[0] for n in (1, 3, 8)])",
    }
    result = subprocess.run(
        [sys.executable, "-c", code[name]],
        cwd=written.code.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout == "[1, 3, 8]\n", result.stderr


@pytest.mark.parametrize("name", NAMES)
def test_files_are_written_without_the_package_but_not_checked(name, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda spec, *rest: None if spec == name else find(spec, *rest)
    )
    chosen = formats.get(name)
    written = chosen.write(subject("linear"), tmp_path / "op.py")
    compile(written.code.read_text(), "op.py", "exec")
    run = chosen.check(written, subject("linear"))
    assert not run.passed
    assert f"pip install 'syno[{name}]'" in run.output


def test_the_stored_weights_are_those_of_the_module(tmp_path):
    made = subject("operator-1")
    module = dict(made.layer.kernel.named_parameters())
    arrays = np.load(formats.get("tvm").write(made, tmp_path / "a.py").weights)
    tensors = load_file(formats.get("triton").write(made, tmp_path / "b.py").weights)
    for name, parameter in module.items():
        assert torch.equal(torch.from_numpy(arrays[name]), parameter.detach())
        assert torch.equal(tensors[name], parameter.detach())
