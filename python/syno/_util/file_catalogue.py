"""TOML files with names: those that come with the package, as `group/name`, and the user's."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from syno._util.checks import is_file, short, text
from syno._util.errors import UserError, nearest

ENDING = ".toml"


@dataclass(frozen=True)
class FileCatalogue:
    """The files of one kind.

    kind: what one is called in messages, such as "recipe"; package, folder: where groups of those
    that come with Syno stand.
    """

    kind: str
    package: str
    folder: str

    @cached_property
    def _shipped(self) -> Mapping[str, Traversable]:
        return {
            f"{group.name}/{file.name.removesuffix(ENDING)}": file
            for group in files(self.package).joinpath(self.folder).iterdir()
            if group.is_dir()
            for file in group.iterdir()
            if file.name.endswith(ENDING)
        }

    def names(self) -> tuple[str, ...]:
        """Of the files that come with the package."""
        return tuple(sorted(self._shipped))

    def read(self, name: str) -> tuple[str, dict[str, Any]]:
        """What it is called (a file of the user's by its stem) and its content.

        UserError for a name that is not known (with the nearest), and for a file that is not
        there or no TOML.
        """
        title, file = self._found(name)
        try:
            return title, tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError, MemoryError) as error:
            # ValueError: no UTF-8, no TOML, and a number of thousands of digits
            raise UserError(
                f"cannot read {self.kind} '{short(title)}': {error}\n  expected: TOML"
            ) from error

    def _found(self, name: str) -> tuple[str, Traversable]:
        known = self._shipped
        if not isinstance(name, str):
            text(f"the name of a {self.kind}", name)
        if name in known:
            return name, known[name]
        names = ", ".join(self.names())
        if not name.endswith(ENDING):
            raise UserError(
                f"unknown {self.kind} '{short(name)}'\n"
                f"  expected: one of {names}, or a {ENDING} file{nearest(name, self.names())}"
            )
        path = Path(name)
        if not is_file(path):
            raise UserError(
                f"there is no {self.kind} file '{short(name)}'\n"
                f"  expected: a {ENDING} file, or one of {names}"
            )
        return path.stem, path
