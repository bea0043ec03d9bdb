"""tools/check_all.sh: parts by name, those that passed before, and a table of how each ended."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
PROGRAMS = ("check", "build", "clang_tidy", "fuzz", "install_check", "extras")
TESTS = ("syno_space_tests", "syno_trials_tests", "syno_support_tests", "syno_threads_tests")
PARTS = 24  # without the fuzzers, which need Clang


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


def run(project: Path, failing: str = "", **options: str) -> tuple[int, list[str], str]:
    """The exit code, the table, and what ran."""
    (project / "ran").write_text("")
    # Not those of the run that this test is a part of.
    environment = {k: v for k, v in os.environ.items() if k not in ("PARTS", "AGAIN", "PYTEST")}
    done = subprocess.run(
        ["bash", project / "tools/check_all.sh"],
        env=environment | {"FAILING": failing, "JOBS": "2"} | options,
        capture_output=True,
        text=True,
    )
    table = done.stdout.partition("== the parts\n")[2].splitlines()
    return done.returncode, table or done.stderr.splitlines(), (project / "ran").read_text()


def git(project: Path, *arguments: str) -> None:
    author = ["-c", "user.name=syno", "-c", "user.email=syno@localhost"]
    subprocess.run(["git", *author, *arguments], cwd=project, check=True, capture_output=True)


def test_all_parts_pass(project: Path) -> None:
    code, table, ran = run(project, PYTEST="-k some")
    assert code == 0
    passed = [row for row in table if row.startswith("   passed ")]
    assert len(passed) - any(" fuzz " in row for row in passed) == PARTS
    by_file = ".venv/bin/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder"
    assert f"{by_file} -m slow or not slow -o norecursedirs=.* tests/audit -k some\n" in ran
    assert "[24] --dist load -k some\n" in ran


@pytest.mark.parametrize(
    ("failing", "part"),
    [
        ("tools/check.sh", "check        the quick checks"),
        ("build/tsan/syno_support_tests", "races        C++ tests with checks for data races"),
        ("tools/extras.sh", "extras       the extras"),
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


def test_parts_are_named(project: Path) -> None:
    code, table, ran = run(project, PARTS="tidy extras")
    assert (code, len(table)) == (0, 2)
    assert "tools/clang_tidy.sh" in ran and "tools/check.sh" not in ran
    code, said, _ = run(project, PARTS="tidy extra")
    assert code == 1 and said[0] == "error: no part is called 'extra'"


def test_a_part_that_passed_runs_again_when_its_files_change(project: Path) -> None:
    for name in ("src/some.cpp", "python/syno/some.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("")
    (project / ".gitignore").write_text("ran\nbuild\n")
    git(project, "init")
    git(project, "add", ".")
    git(project, "commit", "-m", "some")

    def parts_that_run(failing: str = "", **options: str) -> list[str]:
        ran = run(project, failing, PARTS="check tidy extras", **options)[2]
        return [part for part in ("check", "clang_tidy", "extras") if f"tools/{part}.sh" in ran]

    assert parts_that_run("tools/extras.sh") == ["check", "clang_tidy", "extras"]
    assert parts_that_run() == ["extras"]
    assert parts_that_run() == []
    assert parts_that_run(AGAIN="1") == ["check", "clang_tidy", "extras"]
    (project / "python/syno/some.py").write_text("changed")
    assert parts_that_run() == ["check", "extras"]
    assert parts_that_run() == ["check", "extras"]  # it is not committed
    git(project, "commit", "-am", "other")
    assert parts_that_run() == ["check", "extras"]
    assert parts_that_run() == []
    (project / "src/some.cpp").write_text("changed")
    assert parts_that_run() == ["check", "clang_tidy", "extras"]
