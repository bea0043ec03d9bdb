"""Files of what is exported: their paths, and arrays by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

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


def save_arrays(to: Path | IO[bytes], arrays: Mapping[str, ArrayLike]) -> None:
    """Write arrays as an .npz, which needs no torch to read."""
    np.savez(to, **arrays)  # type: ignore[arg-type]  # the names of arrays, not of its options
