"""The machine and the versions that results are of, and whether a file of results goes on with."""

from __future__ import annotations

import contextlib
import importlib.metadata
from collections.abc import Mapping
from pathlib import Path

from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno.tune.machine import described_machine
from syno_lab.experiments.coverage.families import TIMM, TORCHVISION

_OTHER = {"libraries": "other libraries", "device": "another device", "commit": "another commit"}


def known_environment() -> JsonObject:
    """The machine and the versions, of the packages of networks, too."""
    found = described_machine(1)
    libraries = dict(found["libraries"])  # type: ignore[arg-type, call-overload]
    for name in (TIMM, TORCHVISION):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            libraries[name] = importlib.metadata.version(name)
    return {**found, "libraries": libraries}


def check_environment(
    path: Path, found: Mapping[str, object], now: Mapping[str, object], *names: str, again: str
) -> None:
    """UserError where a file of results is of another environment.

    Args:
        path: the file.
        found, now: the environment in the file, and that of this process.
        names: what has to be the same, of libraries, device and commit.
        again: what to do with another file.
    """
    for name in names:
        if found.get(name) != now[name]:
            raise UserError(
                f"the results in '{path}' are of {_OTHER[name]}\n"
                f"  expected: {found.get(name)}      got: {now[name]}\n"
                f"  what to do: take another file, and {again}"
            )
