"""Compressed files of strangers: read part by part, because a small one may hold any amount."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path

from syno._util.checks import short
from syno._util.errors import UserError

# What reading a damaged one raises.
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeError)


def packed_lines(what: str, path: Path, *, line: int, total: int) -> Iterator[str]:
    """The lines of a file that is compressed with gzip, in UTF-8, one after the other.

    Args:
        what: the file in words, such as "table".
        path: the file.
        line: the characters of the longest line.
        total: the characters of all lines.

    Raises:
        UserError: it cannot be read or is damaged, or is larger when it is unpacked.
    """
    count = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            while found := file.readline(line + 1):
                count += len(found)
                if len(found) > line or count > total:
                    raise UserError(
                        f"{what} '{short(str(path))}' is too large when it is unpacked\n"
                        f"  expected: lines of at most {line:,} characters, and at most {total:,} "
                        "characters in all"
                    )
                yield found
    except DAMAGED as error:
        raise UserError(f"cannot read {what} '{short(str(path))}': {error}") from error
