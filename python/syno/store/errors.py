"""Database exceptions told as mistakes or circumstances a user can act on."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, OperationalError

from syno._util.errors import UserError
from syno.runs.retry import retried

T = TypeVar("T")

# Less room than this explains an I/O error: SQLite reports some failed writes by that name.
_FULL_BELOW_BYTES = 1 << 16
# In the definition of a table that every store has.
_SIGN = b"syno_schema"
# What SQLite says of a file whose header or definitions are not those that Syno wrote; it has no
# name of its own.
_NOT_AS_WRITTEN = ("unsupported file format", "no such table", "no such column", "no such index")


class AlreadyCompletedError(UserError):
    """The proposal was told before, by this worker or by the one that took over its lease."""


class LeaseLostError(UserError):
    """Another process took the proposal over, while this one was suspended or could not reach the
    store: what it found meanwhile is in the log and does not count."""


class UnavailableError(UserError):
    """The database cannot be reached, or another process keeps it locked: it may be back soon."""


def persistently(call: Callable[[], T], note: Callable[[str], None]) -> T:
    """Return what a call of the store returns, which is repeated as `retried` does if the database
    cannot be reached.

    Raises:
        UnavailableError: if it cannot be reached for `MOST_WAIT_S` seconds.
    """
    return retried(call, note, UnavailableError)


class DriverLostError(UserError):
    """Another process drives the study now: this one proposes or finds nothing more."""


class LimitReachedError(UserError):
    """All evaluations that the study may have are done, or other processes work on them."""


class AskTakenError(UserError):
    """Another process of the same study stored this ask number first; the search asks again."""


def not_a_store(where: str, found: str) -> UserError:
    """The file or database exists and is something else."""
    return UserError(
        f"'{where}' is not a Syno store: {found}\n"
        "  expected: a store written by `syno search`, or a file that does not exist yet\n"
        "  what to do: check the path, or choose another file for the new store"
    )


class DamagedError(UserError):
    """The store is not what was written: some of it is lost or changed.

    found: what is damaged, each with its table and row or page.
    """

    def __init__(self, message: str, found: Sequence[str]) -> None:
        super().__init__(message)
        self.found = tuple(found)


_SHOWN = 3


def snapshot_of(path: Path) -> Path:
    """Where the copy of a store is that searches write."""
    return path.with_name(f"{path.name}.backup")


def damaged(where: str, found: Iterable[str]) -> DamagedError:
    """What is damaged in the store, each with its table and row or page, and what can be done."""
    listed = list(found)
    lines = [f"  {text}" for text in listed[1:_SHOWN]]
    if len(listed) > _SHOWN:
        lines.append(f"  and more ({len(listed)} in all): `syno store check` lists them")
    message = [f"the store '{where}' is damaged: {listed[0]}", *lines, *_advice(where)]
    return DamagedError("\n".join(message), listed)


def _advice(where: str) -> list[str]:
    if "://" in where:  # on a server
        return ["  what to do: restore the database from a copy"]
    path = Path(where)
    rows = (
        f"`sqlite3 {shlex.quote(str(path))} .recover` reads rows, but cannot tell which are damaged"
    )
    copied = snapshot_of(path)
    if not copied.is_file():
        return [f"  what to do: restore a copy; {rows}"]
    written = datetime.datetime.fromtimestamp(copied.stat().st_mtime).astimezone()
    return [
        f"  what to do: '{copied}' is a copy of {written:%Y-%m-%d %H:%M:%S %Z}: move the store "
        "away, with the files -wal and -shm beside it, and copy it to its place",
        f"  {rows}",
    ]


def is_store(path: Path) -> bool:
    """Whether a file that SQLite does not take for a database was a store."""
    try:
        return _SIGN in path.read_bytes()
    except OSError:
        return False


def _sqlite_error(where: str, path: Path | None, error: sqlite3.Error, timeout: float) -> UserError:
    name = getattr(error, "sqlite_errorname", "") or ""
    full = (
        f"the disk is full while writing the store '{where}'\n"
        "  what was stored before is safe; the result that was being written is not stored\n"
        "  what to do: free some space, then run the same command with the same --name again, or "
        "`syno resume` for a search"
    )
    cannot_write = name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN"))
    if name == "SQLITE_FULL" or (cannot_write and _is_full(path)):
        return UserError(full)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return UnavailableError(
            f"the store '{where}' is locked: another process has been writing to it for more than "
            f"{timeout:g} s\n"
            "  what to do: wait for it or stop it, then continue with `syno resume`"
        )
    # A file system that is mounted read-only refuses the log beside the store, not the store.
    unwritable = name.startswith("SQLITE_CANTOPEN") and _may_only_read(path)
    if name.startswith("SQLITE_READONLY") or unwritable:
        return UserError(
            f"the store '{where}' cannot be written: the file or its folder is read-only\n"
            "  what to do: change the permissions of both, or copy the store to a folder of yours"
        )
    if name.startswith("SQLITE_CANTOPEN"):
        return UserError(
            f"the store '{where}' cannot be opened or created\n"
            "  what to do: check that its folder exists and that you may read and write there"
        )
    if name.startswith("SQLITE_NOTADB") and path is not None and is_store(path):
        return damaged(where, [f"file, page 1: {error}"])
    if name.startswith("SQLITE_NOTADB"):
        return not_a_store(where, "the file is not a SQLite database")
    # Text that is no UTF-8 is noticed by Python's module, which gives no name.
    if name.startswith("SQLITE_CORRUPT") or "decode to UTF-8" in str(error):
        return damaged(where, [f"file: {error}"])
    if name == "SQLITE_ERROR" and str(error).startswith(_NOT_AS_WRITTEN):
        return damaged(where, [f"file: {error}"])
    return UserError(f"the store '{where}' failed: {error}")


def _is_full(path: Path | None) -> bool:
    if path is None or not path.parent.is_dir():
        return False
    return shutil.disk_usage(path.parent).free < _FULL_BELOW_BYTES


def _may_only_read(path: Path | None) -> bool:
    if path is None or not path.is_file():
        return False
    return not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


@contextlib.contextmanager
def translated(where: str, path: Path | None, timeout: float) -> Iterator[None]:
    """Turns operational failures of the database into `UserError`; bugs pass through as they are.

    A broken constraint or bad SQL is a bug of Syno, not a circumstance, and keeps its traceback.
    """
    try:
        yield
    except DBAPIError as error:
        original = error.orig
        if isinstance(original, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        if isinstance(original, sqlite3.Error):
            raise _sqlite_error(where, path, original, timeout) from error
        if isinstance(error, OperationalError) or error.connection_invalidated:
            raise UnavailableError(
                f"the database '{where}' failed: {str(original).strip()}\n"
                "  what to do: check that the server runs, the address, the user and its rights"
            ) from error
        raise
    except UnicodeDecodeError as error:  # SQLite's message repeats a damaged definition
        found = [f"file: text that is not UTF-8 ({error.reason})"]
        raise damaged(where, found) from error
    except json.JSONDecodeError as error:
        found = [f"file: JSON that cannot be read ({error})"]
        raise damaged(where, found) from error
    except sqlite3.Error as error:  # from a PRAGMA on connecting, before SQLAlchemy wraps it
        raise _sqlite_error(where, path, error, timeout) from error
