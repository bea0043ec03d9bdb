"""The one way in which files are written: each appears whole and durable, or stays as it was.

A file is written under another name beside it, `.NAME.syno-XXXXXXXX`, and then renamed. Who writes
it holds its lock, which the kernel frees at the end of the process: so the next writer of the same
file knows, and deletes, what a killed one left.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from syno._util.checks import from_file, parsed_json
from syno._util.errors import UserError
from syno.runs.file_lock import opened

# What libraries that write files of their own say, where Python would raise OSError.
_FULL = ("No space left", "File too large", "quota exceeded", "failed writing file", "I/O error")
# Whoever may read the folder may read the file.
_SHARED = 0o644
PRIVATE = 0o600
_MARK, _DIGITS = ".syno-", 8
_TEMPORARY = re.compile(rf"\.(.*){re.escape(_MARK)}[0-9a-f]{{{_DIGITS}}}((?:\..*)?)", re.DOTALL)
# Of a file system without locks: what a killed process leaves there stays.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)


@contextmanager
def replacing(path: Path, *, mode: int = _SHARED) -> Iterator[Path]:
    """Replace a file in one step: whoever reads sees the old one or the new one, never a part.

    The block writes all of the file to the path that it gets, beside the file. At the end of the
    block, the content is on the disk before it takes the name. After an error, the file is as
    before.

    Args:
        path: the file, in a folder that is there. A link stays one, and its target is replaced.
        mode: the permissions of the file.

    Raises:
        OSError: the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    _delete_leftovers(target)
    token = secrets.token_hex(_DIGITS // 2)
    temporary = target.with_name(f".{target.stem}{_MARK}{token}{target.suffix}")
    descriptor = _claimed(temporary)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
        os.close(descriptor)


def target_name(name: str) -> str:
    """The name of the file that is written under a temporary name; other names stay."""
    found = _TEMPORARY.fullmatch(name)
    return name if found is None else found[1] + found[2]


def _claimed(temporary: Path) -> int:
    """The descriptor of a new file with its lock."""
    try:
        return opened(temporary, fcntl.LOCK_EX, PRIVATE)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)


def _delete_leftovers(target: Path) -> None:
    """Delete what processes that were killed left of a file. What another one writes, stays."""
    stem, suffix = glob.escape(target.stem), glob.escape(target.suffix)
    for left in target.parent.glob(f".{stem}{_MARK}{'?' * _DIGITS}{suffix}"):
        if target_name(left.name) != target.name:
            continue
        with contextlib.suppress(OSError):  # another one deletes it, or it is not ours
            descriptor = os.open(left, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            finally:
                os.close(descriptor)


def why_not_written(error: OSError) -> str:
    """In words, for a message."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "the disk is full" if full else (error.strerror or str(error))


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


def write_json(
    path: Path, content: object, what: str = "the file", option: str | None = None
) -> None:
    """Write a document of JSON as `write_whole` does."""
    write_text(path, json.dumps(content, indent=1) + "\n", what, option)


def read_json(path: Path, what: str, most: int) -> Any:
    """Read a document of JSON of at most so many bytes. what: the document in words.

    Raises:
        UserError: it cannot be read, is too large, or is no JSON.
    """
    with from_file(f"cannot read {what}", path):
        if path.stat().st_size > most:
            raise UserError(f"'{path}' is too large for {what}")
        text = path.read_text(encoding="utf-8")
    try:
        return parsed_json(text)
    except ValueError as error:
        raise UserError(f"'{path}' is not a JSON document: {error}") from None


def _refused(path: Path, what: str, option: str | None, reason: str) -> UserError:
    name = "name another file" if option is None else f"name another file with {option}"
    return UserError(
        f"cannot write {what} to {path}: {reason}\n"
        f"  what to do: {name}, in a writable folder with enough space"
    )
