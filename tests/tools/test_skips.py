"""tests/skips.py: a skip that nothing explains fails a strict run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("reason", "strict", "code", "processes"),
    [
        ("needs a GPU", "strict", pytest.ExitCode.OK, "0"),
        ("tvm is not installed", "strict", pytest.ExitCode.TESTS_FAILED, "0"),
        ("tvm is not installed", "strict", pytest.ExitCode.TESTS_FAILED, "2"),
        ("tvm is not installed", "", pytest.ExitCode.OK, "0"),
    ],
)
def test_an_unexpected_skip_fails_a_strict_run(
    tmp_path: Path, reason: str, strict: str, code: pytest.ExitCode, processes: str
):
    (tmp_path / "conftest.py").write_text("from skips import register as pytest_configure\n")
    (tmp_path / "test_it.py").write_text(
        f"import pytest\ndef test_skipped(): pytest.skip({reason!r})\ndef test_passed(): pass\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "xdist", "--numprocesses", processes, str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "SYNO_SKIPS": strict,
            "PYTHONPATH": str(TESTS),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert ("test_it.py::test_skipped: " in ended.stdout) == (code != pytest.ExitCode.OK)
