"""Files that a user has asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from syno._util.errors import UserError


@contextmanager
def writing(what: str, path: Path, option: str) -> Iterator[None]:
    """Make the folder of a file that the block writes.

    Args:
        what: the file in words.
        path: the file.
        option: of the command, which names it.

    Raises:
        UserError: the folder or the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise UserError(
            f"cannot write {what} to {path}: {error.strerror or error}\n"
            f"  what to do: name another file with {option}, in a writable folder with enough space"
        ) from error
