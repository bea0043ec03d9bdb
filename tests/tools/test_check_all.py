"""tools/check_all.sh goes on after a part that failed, and its table says how each ended."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PROGRAMS = ("check", "build", "clang_tidy", "fuzz", "install_check", "extras")
TESTS = ("syno_space_tests", "syno_trials_tests", "syno_support_tests", "syno_threads_tests")
PARTS = 12  # without the fuzzers, which need Clang


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in which every program notes that it ran, and fails if its name is in FAILING."""
    named = [f"tools/{each}.sh" for each in PROGRAMS]
    named += [f".venv/bin/{each}" for each in ("python", "syno", "ctest")]
    named += [f"build/{preset}/{each}" for preset in ("release", "tsan") for each in TESTS]
    for name in named:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>ran\n[ "$FAILING" != {name} ]\n')
        path.chmod(0o755)
    for script in ("check_all.sh", "common.sh"):
        shutil.copy(TOOLS / script, tmp_path / "tools")
    return tmp_path


def run(project: Path, failing: str) -> tuple[int, list[str], str]:
    """The exit code, the table, and what ran."""
    done = subprocess.run(
        ["bash", project / "tools/check_all.sh", "-k", "some"],
        env=os.environ | {"FAILING": failing, "JOBS": "2"},
        capture_output=True,
        text=True,
    )
    table = done.stdout.partition("== the parts\n")[2].splitlines()
    return done.returncode, table, (project / "ran").read_text()


def test_all_parts_pass(project: Path) -> None:
    code, table, ran = run(project, "")
    assert code == 0
    passed = [row for row in table if row.startswith("   passed ")]
    assert len(passed) - any("fuzzers" in row for row in passed) == PARTS
    assert ".venv/bin/python -m pytest -m slow or not slow -o norecursedirs=.* -k some\n" in ran


@pytest.mark.parametrize(
    ("failing", "part"),
    [
        ("tools/check.sh", "quick checks"),
        ("build/tsan/syno_support_tests", "C++ tests with checks for data races"),
        (".venv/bin/python", "Python tests, all of them"),
    ],
)
def test_a_part_that_fails_is_named_and_the_others_run(
    project: Path, failing: str, part: str
) -> None:
    code, table, ran = run(project, failing)
    assert code == 1
    failed = [row for row in table if row.startswith("   FAILED ")]
    assert len(failed) == 1 and failed[0].endswith(f" s  {part}")
    assert ran.splitlines()[-1].startswith(".venv/bin/python -m pytest")
