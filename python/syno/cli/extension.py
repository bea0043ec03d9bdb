"""Commands of other packages: each declares an `Extension` in the entry-point group below."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

GROUP = "syno.commands"


class DrawFigures(Protocol):
    """What `syno report --figures` calls."""

    def __call__(
        self,
        results: Sequence[Path],
        store: str | None,
        folder: Path,
        only: Sequence[str],
        *,
        as_json: bool,
    ) -> bool:
        """Draw figures from files and a store into a folder, and say whether one was drawn."""


@dataclass(frozen=True)
class Extension:
    """What a package adds to the command line.

    package: whose folder `commands` has a module for each command, as `syno.cli` has, and whose
    folder `examples` has their examples. commands: further commands, each with a line of help.
    parts: modules with further commands of a group, by the name of the group. figures: a module
    whose `draw` is a `DrawFigures`.
    """

    package: str
    commands: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    figures: str = ""


@functools.cache
def extensions() -> tuple[Extension, ...]:
    """The extensions of all packages that are installed."""
    return tuple(each.load() for each in entry_points(group=GROUP))
