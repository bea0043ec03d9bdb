"""Paths of what is exported."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from syno._util.checks import is_folder
from syno._util.errors import UserError


def with_suffix(path: str | os.PathLike[str], suffix: str) -> Path:
    """The path with this suffix. UserError where nothing can be written there."""
    code = Path(path)
    if not code.name:
        raise UserError(
            f"'{path}' is a folder\n  expected: a file to write, such as {code / 'network'}"
        )
    if code.suffix != suffix:
        code = code.with_name(code.name + suffix)
    if suffix == ".py" and code.stem in sys.stdlib_module_names:
        raise UserError(
            f"'{code.name}' would hide Python's own module '{code.stem}' from programs in that "
            f"folder\n  what to do: use another name, such as {code.stem}_kernel.py"
        )
    if not is_folder(code.parent):
        raise UserError(f"there is no folder '{code.parent}' to write '{code.name}' into")
    return code
