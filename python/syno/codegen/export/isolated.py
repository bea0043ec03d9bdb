"""Runs exported code in a process that cannot import Syno."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from syno.runs import helper_process

_TIME_LIMIT = 120.0  # seconds; importing torch is most of it

# Runs in the other process. `-I` takes the working directory and PYTHON* away, and the finder
# refuses `syno` even where it is installed.
_PROGRAM = """
import importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "syno":
            raise ImportError("this process may not import syno")

sys.meta_path.insert(0, Refuse())
program, sys.argv = sys.argv[1], ["-", *sys.argv[2:]]
exec(compile(program, "<check>", "exec"), {"__name__": "__main__"})
"""

_FILES = """
import runpy, sys
for file in sys.argv[1:]:
    runpy.run_path(file, run_name="__main__")
"""


@dataclass(frozen=True)
class IsolatedRun:
    """Whether the code ran and found its own outputs right; what it printed, or why it did not."""

    passed: bool
    output: str


def run_without_syno(files: list[Path]) -> IsolatedRun:
    """Run exported Python files, one after the other, in one process without Syno.

    Each compares its outputs with the stored ones of the reference interpreter and leaves with an
    error when they differ.
    """
    return run_program(_FILES, files)


def run_program(program: str, arguments: list[Path]) -> IsolatedRun:
    """Run Python source with files as its arguments in a process without Syno."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    with tempfile.TemporaryDirectory(prefix="syno-isolated-") as folder:
        try:
            done = subprocess.run(
                helper_process.isolated_command(_PROGRAM, program, *map(str, _absolute(arguments))),
                capture_output=True,
                text=True,
                cwd=folder,
                env=environment,
                timeout=_TIME_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return IsolatedRun(False, f"did not finish within {_TIME_LIMIT:.0f} s")
    if done.returncode != 0:
        return IsolatedRun(False, done.stderr.strip().rpartition("\n")[2])
    return IsolatedRun(True, done.stdout.strip())


def _absolute(files: list[Path]) -> list[Path]:
    return [file.resolve() for file in files]
