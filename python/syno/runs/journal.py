"""What a resumable job has done: it is kept as soon as it is done, and not done again.

    journal = Journal(found, keep)
    for key in journal.waiting(keys):
        journal.put(key, measure(key))

Where it is kept, `keep` says: in a line of a file (`Lines`), in a document that is replaced
(files.py), or in the log of a study in a store. A job that is killed at any moment loses what it
was doing, and nothing that it had done.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Generic, TypeVar

from syno._util.checks import from_file

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Journal(Generic[K, V]):
    """What a job has done, by key.

    Args:
        found: what earlier processes have done.
        keep: is called with the key and the value of what was done. What it returns from is kept,
            whatever happens to this process.
    """

    def __init__(self, found: Mapping[K, V], keep: Callable[[K, V], object]) -> None:
        self._done, self._keep = dict(found), keep

    @property
    def done(self) -> Mapping[K, V]:
        """All that is done."""
        return MappingProxyType(self._done)

    def waiting(self, keys: Iterable[K]) -> Iterator[K]:
        """Yield the keys of what is not done, in their order."""
        return (key for key in keys if key not in self._done)

    def once(self, key: K, do: Callable[[], V]) -> V:
        """Return the value of a key, which `do` returns if it is not done yet."""
        if key not in self._done:
            self.put(key, do())
        return self._done[key]

    def put(self, key: K, value: V) -> None:
        """Keep a value, which takes the place of an earlier one."""
        self._keep(key, value)
        self._done[key] = value


class Lines:
    """A file of lines, to which one process at a time appends; each is on the disk at once.

    What a killed process wrote of its last line is cut off, with a warning.

    Raises:
        UserError: the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with from_file("cannot write", path):
            self._file = path.open("ab+")
        self._cut_off()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, content: Mapping[str, object]) -> None:
        """Append a line of JSON."""
        with from_file("cannot write", self._path):
            self._file.write(json_line(content).encode())
            self._flush()

    def clear(self) -> None:
        """Delete all lines."""
        self._file.truncate(0)
        self._flush()

    def _cut_off(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole = content.rfind(b"\n") + 1
        if whole == len(content):
            return
        warnings.warn(
            f"a process was killed while it wrote the last line of '{self._path}'; "
            "what the line was about is done again",
            stacklevel=3,
        )
        self._file.truncate(whole)
        self._flush()

    def _flush(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def json_line(content: Mapping[str, object]) -> str:
    """An object of JSON as a line of a file."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False) + "\n"


def whole_lines(path: Path) -> list[str]:
    """The lines of a file that `Lines` writes, without one that is not written to its end.

    Raises:
        OSError, UnicodeDecodeError: it cannot be read.
    """
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1].decode().split("\n")[:-1]
