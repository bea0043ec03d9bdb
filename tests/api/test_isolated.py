"""The process that runs exported code really has no Syno."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from syno.codegen.export import export
from syno.codegen.export.isolated import run_without_syno
from syno.operators import zoo

BINDING = {"N": 2, "C_in": 4, "C_out": 4, "H": 5, "W": 5, "k": 3}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(zoo.load("conv2d"), tmp_path_factory.mktemp("x") / "op", binding=BINDING).code


def test_an_exported_operator_runs_and_finds_its_outputs_right(exported: Path) -> None:
    run = run_without_syno([exported])
    assert run.passed, run.output
    assert run.output.startswith("right: 200 outputs")


def test_wrong_weights_are_found_out(exported: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    tensors = load_file(exported.with_suffix(".safetensors"))
    tensors["example.y"] = tensors["example.y"] + np.float32(1)
    file = tmp_path / "wrong.py"
    file.write_text(exported.read_text())
    save_file(tensors, file.with_suffix(".safetensors"))
    run = run_without_syno([file])
    assert not run.passed
    assert "wrong: an output is off" in run.output


def test_code_that_imports_syno_does_not_run(tmp_path: Path) -> None:
    file = tmp_path / "cheat.py"
    file.write_text("import syno.operators.operator\n")
    run = run_without_syno([file])
    assert (run.passed, run.output) == (False, "ImportError: this process may not import syno")
