"""Every program in examples/python runs and gives what it says."""

from __future__ import annotations

import runpy

import pytest

from .pages import ROOT

FOLDER = ROOT / "examples" / "python"
# Programs that write files, and those that take the address of a store.
WRITING = ("own_network", "use_operator")
SEARCHING = ("evaluate_function", "language_model", "own_training_loop")


def test_every_example_has_a_test():
    found = {file.stem for file in FOLDER.glob("*.py")}
    assert found == {*WRITING, *SEARCHING}


@pytest.mark.parametrize("name", WRITING)
def test_an_example_writes_files_that_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = runpy.run_path(str(FOLDER / f"{name}.py"))
    given["main"](tmp_path)
    codes = list(tmp_path.glob("*.py"))
    assert codes and all(code.with_suffix(".safetensors").is_file() for code in codes)
    for code in codes:
        runpy.run_path(str(code), run_name="__main__")  # compares itself with stored outputs


@pytest.mark.parametrize("name", SEARCHING)
def test_an_example_finds_operators(name):
    found = runpy.run_path(str(FOLDER / f"{name}.py"))["main"]()
    assert found.baseline is not None and len(found.trained) == 3
    assert found.best in found.trained
