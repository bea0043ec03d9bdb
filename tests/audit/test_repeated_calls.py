"""Every public function many times: no call keeps memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts bytes as glibc does")


def repeat(*arguments, timeout=None):
    # In a process of its own: all memory comes from malloc there, which counts every byte.
    return subprocess.run(
        [sys.executable, "-m", "tests.audit.repeated_calls", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONMALLOC": "malloc"},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


@pytest.mark.slow
def test_no_public_call_keeps_memory(tmp_path):
    """SYNO_REPEATED_CALLS (20,000) calls of each cheap function, fewer of the others."""
    result = repeat(tmp_path)
    print(result.stdout)
    assert result.returncode == 0, f"{result.stdout[-3000:]}{result.stderr[-3000:]}"


@pytest.mark.slow
def test_a_call_that_keeps_a_hundred_bytes_is_found(tmp_path):
    """The loop itself: functions that leak grow, of Python and beside it; others do not."""
    names = ["Operator.macs", "native function", "leak of Python", "leak of malloc"]
    result = repeat(tmp_path, "--calls", 4000, "--leaks", "--only", *names)
    assert result.returncode == 1, f"{result.stdout}{result.stderr}"
    lines = result.stdout.splitlines()[: len(names)]
    grows = [name for name, line in zip(names, lines, strict=True) if line.endswith("grows")]
    assert grows == ["leak of Python", "leak of malloc"], result.stdout
