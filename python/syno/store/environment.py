"""Describes the machine and the software that results come from."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import subprocess
from pathlib import Path

from syno._util.helper_process import find_program
from syno.store.records import Environment

_LIBRARIES = ("syno", "numpy", "torch", "sqlalchemy", "scikit-learn", "pillow")


def capture_environment(*, threads: int, rules: str, device: str | None = None) -> Environment:
    """The present environment; `device` is the processor's name unless given."""
    return Environment(
        device=device or _processor(),
        platform=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        libraries={name: version for name in _LIBRARIES if (version := _version(name))},
        commit=_commit(),
        threads=threads,
        rules=rules,
    )


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


@functools.cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@functools.cache
def _commit() -> str:
    """The commit of the source tree this runs from, with "+" when sources differ from it.

    Empty for an installed package: its version says which sources it was built from.
    """
    package = Path(__file__).resolve().parents[1]
    root = package.parents[1]
    if package.parent.name != "python" or not (root / ".git").exists():
        return ""
    try:
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):  # no git, or no commit yet
        return ""
    return commit + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    program = find_program("git")
    if program is None:
        raise FileNotFoundError("git")
    command = [program, "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
