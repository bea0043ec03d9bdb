"""tools/check_layers.py: finds what layers.toml forbids, with file and line, and nothing else."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from check_layers import closure, violations

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    """A small project with the real layers.toml; returns a function that writes a file into it."""
    shutil.copy(ROOT / "layers.toml", tmp_path)

    def write(name, *lines):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        return tmp_path

    write("src/syno/support/hash.h", "#pragma once", "#include <cstdint>")
    write("src/syno/sizes/size.h", "#pragma once", '#include "syno/support/hash.h"')
    write(
        "src/syno/sizes/size_test.cpp", "#include <gtest/gtest.h>", '#include "syno/sizes/size.h"'
    )
    write("src/syno/rules/rule.h", "#pragma once", '#include "syno/sizes/size.h"')
    write("src/bindings/size.cpp", "#include <nanobind/nanobind.h>", '#include "syno/rules/rule.h"')
    write("python/syno/__init__.py", "from syno._util.errors import UserError")
    write("python/syno/_util/errors.py", "from syno._core import UserError")
    write(
        "python/syno/store/tables.py",
        "import sqlalchemy",
        "from ..operators.operator import Operator",
    )
    write(
        "python/syno/codegen/emitters/tvm_text.py",
        "import tvm.s_tir",
        "from syno.codegen import native",
    )
    write("python/syno/cli/main.py", "import syno", "from syno import Operator, report")
    return write


def test_a_clean_tree_passes(tree):
    root = tree(
        "python/syno/study/loop.py", "from syno import store", "from syno.train import train"
    )
    assert violations(root) == []


@pytest.mark.slow
def test_this_project_passes():
    assert violations(ROOT) == []


@pytest.mark.parametrize(
    ("file", "lines", "line", "message"),
    [
        (
            "src/syno/sizes/bad.cpp",
            ["// A lower layer.", "", '#include "syno/rules/rule.h"'],
            3,
            "layer 'sizes' may not use layer 'rules'; it may use: support",
        ),
        (
            "src/syno/rules/bad.h",
            ["#pragma once", '  #  include "../plan/cost.h"'],
            2,
            '#include "../plan/cost.h" is in no layer',
        ),
        ("src/syno/graph/bad.cpp", ["#include <torch/torch.h>"], 1, "not the standard library's"),
        ("src/syno/graph/bad.cpp", ["#include <Python.h>"], 1, "only ['bindings'] may"),
        ("src/syno/graph/bad.cpp", ["#include <gtest/gtest.h>"], 1, "not the standard library's"),
        ("src/syno/nowhere/bad.h", ["#pragma once"], 1, "belongs to no layer"),
        (
            "python/syno/report/page.py",
            ["import json", "from syno.study import loop"],
            2,
            "layer 'report' may not use layer 'study'",
        ),
        (
            "python/syno/report/page.py",
            ["import json", "", "from ..engines.engine import Engine"],
            3,
            "layer 'report' may not use layer 'engines'",
        ),
        (
            "python/syno/report/deep/page.py",
            ["from ... import study"],
            1,
            "layer 'report' may not use layer 'study'",
        ),
        (
            "python/syno/operators/specification.py",
            ["def late():", "    from .zoo import conv2d"],
            2,
            "layer 'operators' may not use layer 'operators.zoo'",
        ),
        (
            "python/syno/data/sets.py",
            ["from syno import Operator"],
            1,
            "layer 'data' may not use layer '__init__'",
        ),
        (
            "python/syno/study/log.py",
            ["import sqlalchemy.orm"],
            1,
            "'sqlalchemy' may not be imported",
        ),
        (
            "python/syno/codegen/verify/check.py",
            ["import tvm"],
            1,
            "only in codegen/emitters/tvm*",
        ),
        (
            "python/syno/codegen/native/function.py",
            ["from syno.codegen import verify"],
            1,
            "layer 'codegen.native' may not use layer 'codegen.verify'",
        ),
        ("python/syno/surprise.py", ["x = 1"], 1, "'surprise' is no layer of layers.toml"),
    ],
)
def test_a_violation_is_found_with_its_file_and_line(tree, file, lines, line, message):
    (found,) = violations(tree(file, *lines))
    assert found.startswith(f"{file}:{line}: ")
    assert message in found


def test_the_command_fails_on_a_violation_and_names_it(tree):
    root = tree("src/syno/sizes/bad.cpp", '#include "syno/rules/rule.h"')
    command = [sys.executable, ROOT / "tools/check_layers.py", root]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert "src/syno/sizes/bad.cpp:1: layer 'sizes' may not use layer 'rules'" in result.stdout


def test_layers_that_use_each_other_both_ways_are_refused():
    with pytest.raises(SystemExit, match="a cycle: a -> b -> a"):
        closure({"a": ["b"], "b": ["a"]})


def test_a_layer_that_does_not_exist_is_refused():
    with pytest.raises(SystemExit, match="'a' uses 'b', which is not a layer"):
        closure({"a": ["b"]})


def test_cmake_links_the_layers_that_layers_toml_names():
    layers = tomllib.loads((ROOT / "layers.toml").read_text())["cpp"]["layers"]
    calls = re.findall(
        r"^syno_layer\((\w+)(?: DEPENDS ((?:(?!TEST_DEPENDS)[\w ])+?))?"
        r"(?: TEST_DEPENDS ([\w ]+))?\)$",
        (ROOT / "CMakeLists.txt").read_text(),
        re.M,
    )
    assert {name: (uses.split(), tests.split()) for name, uses, tests in calls} == {
        name: (entry["uses"], entry.get("test_uses", []))
        for name, entry in layers.items()
        if entry["path"].startswith("src/syno/")
    }
