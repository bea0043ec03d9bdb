"""Paths of what is exported, and files that appear whole."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from syno._util.errors import UserError


def with_suffix(path: str | os.PathLike[str], suffix: str) -> Path:
    """The path with this suffix. UserError where nothing can be written there."""
    code = Path(path)
    if code.suffix != suffix:
        code = code.with_name(code.name + suffix)
    if suffix == ".py" and code.stem in sys.stdlib_module_names:
        raise UserError(
            f"'{code.name}' would hide Python's own module '{code.stem}' from programs in that "
            f"folder\n  what to do: use another name, such as {code.stem}_kernel.py"
        )
    if not code.parent.is_dir():
        raise UserError(f"there is no folder '{code.parent}' to write '{code.name}' into")
    return code


def write(path: Path, write: Callable[[Path], object]) -> None:
    """Writes a file in one step: whoever reads sees the old one or the new one, never a part."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        write(temporary)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"cannot write '{path}': {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
