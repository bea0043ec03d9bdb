"""Describes the machine and the software that results come from."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import subprocess
from pathlib import Path

from syno._util.cpu_info import cpu_info
from syno.runs.helper_process import find_program
from syno.store.records import Environment

# What no result depends on: among them are the files that a command replaces while it runs, such as
# that of `syno bench network --json > bench/results/network.json`.
_NO_SOURCES = (":(exclude)bench/results", ":(exclude)docs", ":(exclude)*.md")
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
    return next(iter(cpu_info("model name")), platform.processor() or platform.machine())


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
        return commit_of(root)
    except (OSError, subprocess.SubprocessError):  # no git, or no commit yet
        return ""


def commit_of(root: Path) -> str:
    """The commit of a checkout, with "+" when sources differ from it; results and pages are none.

    Raises:
        OSError, subprocess.SubprocessError: there is no git, or no commit.
    """
    commit = _git(root, "rev-parse", "HEAD")
    status = ("status", "--porcelain", "--untracked-files=no")
    return commit + ("+" if _git(root, *status, "--", ".", *_NO_SOURCES) else "")


def _git(root: Path, *arguments: str) -> str:
    program = find_program("git")
    if program is None:
        raise FileNotFoundError("git")
    command = [program, "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
