"""A copy of a SQLite store beside it, to go back to when the store is damaged."""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from syno._util.errors import UserError
from syno.runs.files import write_whole
from syno.store.errors import DamagedError, damaged, snapshot_of
from syno.store.store import Store

# What SQLite says of pages that are not as it wrote them.
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
# Seconds between two copies of a search, and how many times as long as a copy takes at least.
INTERVAL_S = 600.0
_LEAST = 50.0


def back_up(store: Store, target: Path | None = None) -> Path:
    """Copy a store into a file in one step, also while others write. Every row is checked.

    Args:
        store: a store in a file.
        target: the copy; default: beside the store, with the ending `.backup`.

    Returns:
        The path of the copy.

    Raises:
        DamagedError: the store is damaged. An earlier copy stays as it is.
        UserError: the store is no file, or the copy cannot be written.
    """
    path = store.path
    if path is None:
        raise UserError(
            f"'{store.name}' is no file\n  what to do: use the tools of the server, such as pg_dump"
        )
    target = snapshot_of(path) if target is None else target
    if target.exists() and (target.samefile(path) or not target.is_file()):
        what = "the store itself" if target.samefile(path) else "no file"
        raise UserError(f"'{target}' is {what}\n  expected: another file")

    def write(to: Path) -> None:
        try:
            _copy(path, to)
            with Store.open(str(to), read_only=True):
                pass
        except DamagedError as error:
            raise damaged(store.name, error.found) from error
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "").startswith(_DAMAGED):
                raise damaged(store.name, [f"file: {error}"]) from error
            raise OSError(errno.EIO, str(error)) from error

    write_whole(target, write, "the copy of the store")
    return target


def _copy(path: Path, to: Path) -> None:
    with (
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source,
        closing(sqlite3.connect(to)) as copy,
    ):
        source.backup(copy)
        # One file, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")


class Snapshots:
    """Copies of the store of a long search, at intervals.

    note: is told when a copy cannot be written; the search goes on.
    """

    def __init__(
        self,
        store: Store,
        note: Callable[[str], object],
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._note, self._timer = store, note, timer
        self._next = timer() + INTERVAL_S

    def step(self) -> None:
        """Copy the store if it is time. DamagedError if it is damaged."""
        began = self._timer()
        if self._store.path is None or began < self._next:
            return
        try:
            back_up(self._store)
        except DamagedError:
            raise
        except UserError as error:
            self._note(f"no copy of the store: {error}")
        now = self._timer()
        self._next = now + max(INTERVAL_S, _LEAST * (now - began))
