"""docs/trust.md says of each test that a promise names in which routine it runs."""

from __future__ import annotations

import ast
import re

import pytest

from .pages import ROOT, prose

PROMISES = prose(ROOT / "docs/trust.md").partition("\n## Threat model\n")[0]
ROWS = re.findall(r"^\| (?!promise|---)(.+?) \| (.+?) \| (.+?) \|$", PROMISES, re.MULTILINE)


@pytest.mark.parametrize(("promise", "tests", "routines"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_the_tests_of_a_promise_run_when_the_page_says(promise, tests, routines):
    found = [_routine(name) for name in re.findall(r"`([^`]+::[^`]+)`", tests)]
    assert found, promise
    said = routines.split(", ")
    assert (said * len(found) if len(said) == 1 else said) == found


def test_every_table_says_when_its_tests_run():
    assert len(ROWS) == len(re.findall(r"^\| .*::", PROMISES, re.MULTILINE)) > 20


def _routine(name: str) -> str:
    """`test` for a test that `make test` runs at least with some of its cases."""
    file, _, test = name.partition("::")
    path = ROOT / file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == test]
    assert len(functions) == 1, f"{name} is not there"
    marks = [ast.unparse(mark) for mark in functions[0].decorator_list]
    marks += [mark for node in tree.body for mark in _module_marks(node)]
    if path.name.startswith("test_"):
        return "check-all" if "pytest.mark.slow" in marks else "test"
    # A contract: it runs where a file of tests takes it over.
    users = [each for each in path.parent.glob("test_*.py") if path.stem in each.read_text()]
    assert users, f"no file of tests takes over {file}"
    return "test"


def _module_marks(node: ast.stmt) -> list[str]:
    if not (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"):
        return []
    held = node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]
    return [ast.unparse(mark) for mark in held]


def test_the_routines_run_what_the_page_says():
    assert "exec make test" in (ROOT / ".ci/run").read_text()
    assert (
        '-m "slow or not slow" -o "norecursedirs=.*"' in (ROOT / "tools/check_all.sh").read_text()
    )
    assert "addopts" in (text := (ROOT / "pyproject.toml").read_text()) and "not slow" in text
