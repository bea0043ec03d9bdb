"""The surface of syno._core is under review: its stub is in git, and a change shows there."""

import difflib
import subprocess
import sys
from pathlib import Path

import syno._core

ROOT = Path(__file__).resolve().parents[2]

# What a program does with the extension, and keeps until the interpreter ends.
USE = """
import numpy as np
from syno import _core

source = _core.preset_source(_core.preset_names()[0])
operator, binding = _core.random_operator(7, min_weights=1)
shapes = _core.operator_shapes(operator, binding)
weights = [np.ones(shape) for shape in shapes.weights]
y = _core.interpret(operator, binding, np.ones(shapes.input), weights)
kept = [operator, _core.Operator.parse(operator.text), y, _core.RuleSet()]
for text in ["", "syno operator 1", "H=0"]:
    try:
        _core.Operator.parse(text)
        raise SystemExit(f"accepted {text!r}")
    except _core.UserError as error:
        kept.append(error)
print(len(kept))
"""


def run(*command):
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)


def test_the_stub_in_git_is_the_one_the_extension_has(tmp_path):
    stub = tmp_path / "_core.pyi"
    patterns = str(ROOT / "src/bindings/stub_patterns.txt")
    options = ["-q", "-m", "syno._core", "-p", patterns, "-o", str(stub)]
    result = run("-m", "nanobind.stubgen", *options)
    assert result.returncode == 0, result.stderr
    golden = (ROOT / "python/syno/_core.pyi").read_text().splitlines()
    found = stub.read_text().splitlines()
    difference = "\n".join(difflib.unified_diff(golden, found, "in git", "now", lineterm=""))
    assert not difference, f"the bindings changed; `make stub` writes the new stub\n{difference}"


def test_every_public_class_and_function_has_a_docstring():
    public = {name: value for name, value in vars(syno._core).items() if name[0] != "_"}
    assert len(public) > 10
    assert [name for name, value in public.items() if not value.__doc__] == []


def test_using_the_extension_leaks_nothing():
    result = run("-c", USE)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "7\n"
    assert "leaked" not in result.stderr, result.stderr
