"""tests/order.py: every process has the same random order, and a number repeats it."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from order import VARIABLE, mixed

TESTS = Path(__file__).resolve().parents[1]
PLAIN = [
    SimpleNamespace(path=file, cls=group, name=(file, group, number))
    for file in "abcdef"
    for group in ("One", None)
    for number in range(6)
]


def names(number: int) -> list[tuple[str, str | None, int]]:
    return [item.name for item in mixed(PLAIN, number)]


def test_a_number_repeats_an_order() -> None:
    assert names(7) == names(7) != names(8)
    assert set(names(7)) == {item.name for item in PLAIN}


def test_files_and_classes_stay_together_and_are_mixed() -> None:
    found = names(7)
    groups = [group for group, _ in itertools.groupby(found, key=lambda each: each[:2])]
    assert len(groups) == 12
    files = [file for file, _ in groups]
    assert files[::2] == files[1::2] != sorted(files[::2])
    assert {group for _, group in groups[::2]} == {"One", None}
    assert [each[2] for each in found[:6]] != sorted(each[2] for each in found[:6])


def test_processes_have_one_order_that_the_head_of_the_run_names(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from order import register as pytest_configure\n")
    for file in "abc":
        many = "@pytest.mark.parametrize('number', range(9))\n"
        text = f"import pytest\n{many}def test_it(number): pass\n"
        (tmp_path / f"test_{file}.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop(VARIABLE, None)
    options = ["-p", "xdist", "--numprocesses", "2", "--dist", "loadfile"]
    options.append("--import-mode=importlib")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    # xdist ends a run whose processes have the tests in different orders.
    assert done.returncode == 0, done.stdout + done.stderr
    assert "27 passed" in done.stdout
    assert re.search(rf"order of the tests: {VARIABLE}=[1-9]\d*\n", done.stdout)
