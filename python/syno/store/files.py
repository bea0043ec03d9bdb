"""A SQLite store as files: what is damaged there, found before SQLite opens, and so changes, any.

SQLite takes some damage for another meaning: without a word it leaves out a log with a wrong
checksum, and it reads what a cut file lacks as zeros.
"""

from __future__ import annotations

import struct
import time
from pathlib import Path

from syno.store.check import Finding
from syno.store.wal import Log, read_log

MAGIC = b"SQLite format 3\0"
PAGE_SIZE = 4096  # of every file that Syno makes
_HEADER_BYTES = 100
# In the definition of a table that every store has.
_SIGN = b"syno_schema"
_LATEST_FORMAT = 4
_UTF_8 = 1
# A process that is writing may be half way: what is found counts when it is still there later.
_LOOKS = 3
_PAUSE_S = 0.05


def file_findings(path: Path) -> list[Finding]:
    """What is damaged in the file and the log beside it; nothing for a file that is no store."""
    found: list[Finding] = []
    for look in range(_LOOKS):
        if look:
            time.sleep(_PAUSE_S)
        found = _findings(path)
        if not found:
            break
    return found


def is_store(path: Path) -> bool:
    """Whether a file that SQLite does not take for a database was a store."""
    try:
        return _SIGN in path.read_bytes()
    except OSError:
        return False


def page_size_of(header: bytes) -> int | None:
    """The size of pages that the header of the file names; None where it names none."""
    if len(header) < _HEADER_BYTES or not header.startswith(MAGIC):
        return None
    size = struct.unpack_from(">H", header, 16)[0]
    size = 65536 if size == 1 else size
    return size if size >= 512 and size & (size - 1) == 0 else None


def read_store_log(path: Path) -> Log:
    """The log beside the file."""
    with path.open("rb") as stream:
        size = page_size_of(stream.read(_HEADER_BYTES))
    return read_log(path, size or PAGE_SIZE)


def _findings(path: Path) -> list[Finding]:
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER_BYTES)
            length = stream.seek(0, 2)
        log = read_store_log(path)
    except OSError:
        return []  # SQLite says what cannot be read
    found = [Finding("file", log.damage)] if log.damage else []
    if not header:
        return found
    size = page_size_of(header)
    if size is None:
        if is_store(path):
            found.append(Finding("file, page 1", "its header is not that of a database"))
        return found
    versions, fixed = tuple(header[18:20]), tuple(header[20:24])
    # A log counts for a file that says so alone.
    modes = [(2, 2)] if log.frames else [(1, 1), (2, 2)]
    schema_format, encoding = (struct.unpack_from(">I", header, at)[0] for at in (44, 56))
    # An empty database has neither yet.
    known = schema_format <= _LATEST_FORMAT and encoding in (0, _UTF_8)
    if versions not in modes or fixed != (0, 64, 32, 32) or not known:
        found.append(Finding("file, page 1", "its header is not the one that was written"))
    if length % size:
        what = f"its length of {length} bytes is not a multiple of its page size, {size}"
        found.append(Finding(f"file, page {length // size + 1}", what))
    return found
