"""The one way in which files are written: each appears whole and durable, or stays as it was."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from syno._util.errors import UserError

# What libraries that write files of their own say, where Python would raise OSError.
_FULL = ("No space left", "File too large", "quota exceeded", "failed writing file", "I/O error")
# Whoever may read the folder may read the file.
_SHARED = 0o644
PRIVATE = 0o600


@contextmanager
def replacing(path: Path, *, mode: int = _SHARED, beside: str = "") -> Iterator[Path]:
    """Replace a file in one step: whoever reads sees the old one or the new one, never a part.

    The block writes all of the file to the path that it gets, beside the file. At the end of the
    block, the content is on the disk before it takes the name. After an error, the file is as
    before.

    Args:
        path: the file, in a folder that is there. A link stays one, and its target is replaced.
        mode: the permissions of the file.
        beside: the name of the file that the block writes. It is for files that one process at a
            time writes: what a killed one left there is gone with the next one.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    if beside:
        temporary = target.with_name(beside)
        temporary.write_bytes(b"")
    else:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix
        )
        os.close(handle)
        temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(
    path: Path, write: Callable[[Path], object], what: str = "the file", option: str | None = None
) -> None:
    """Write a file that a user has asked for, as `replacing` does.

    Args:
        path: the file. Its folder is made. What is no plain file, such as a pipe, is written as it
            is.
        write: writes all of it to the path that it is given.
        what: the file in words.
        option: of the command, which names the file.

    Raises:
        UserError: the folder or the file cannot be written, or the disk is full.
    """
    try:
        if path.exists() and not path.is_file():
            write(path)
            return
        Path(os.path.realpath(path)).parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            write(temporary)
    except UserError:
        raise
    except OSError as error:
        raise _refused(path, what, option, error.strerror or str(error)) from error
    except Exception as error:  # of a library that writes by itself
        if not any(words in str(error) for words in _FULL):
            raise
        raise _refused(path, what, option, str(error).partition("\n")[0]) from error


def write_text(path: Path, text: str, what: str = "the file", option: str | None = None) -> None:
    """Write a file of text in UTF-8 as `write_whole` does."""
    write_whole(path, lambda to: to.write_text(text, encoding="utf-8"), what, option)


def _refused(path: Path, what: str, option: str | None, reason: str) -> UserError:
    name = "name another file" if option is None else f"name another file with {option}"
    return UserError(
        f"cannot write {what} to {path}: {reason}\n"
        f"  what to do: {name}, in a writable folder with enough space"
    )
