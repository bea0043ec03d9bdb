"""Rows of a SQLite file whose structure may be damaged, read page by page without SQLite.

Every leaf of a table holds whole rows, so each page that can be read gives its rows, whatever
became of the pages above it, of the header or of the log. A row may come several times, from older
copies of its page: whoever takes one checks its seal. Where the head of a page is damaged, rows are
looked for at every byte of it.

Format: https://www.sqlite.org/fileformat2.html, sections 1.6 (pages) and 2.1 (records).
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path

from syno.store.files import PAGE_SIZE, page_size_of, read_store_log
from syno.store.raw import decoded

Record = tuple[int, list[object]]

_TABLE_LEAF = 0x0D
_OTHER_KINDS = (0x02, 0x05, 0x0A)
_FILE_HEADER_BYTES = 100
# Copies of an overflow page that are tried.
_MOST_COPIES = 4
_MOST_COLUMNS = 64
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class Pages:
    """All copies of the pages of a store, those in the log beside it first, the newest first."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        self._size = page_size_of(content) or PAGE_SIZE
        self._copies: dict[int, list[bytes]] = defaultdict(list)
        for frame in reversed(read_store_log(path).slots):
            self._add(frame.page, frame.content)
        for start in range(0, len(content), self._size):
            page = content[start : start + self._size].ljust(self._size, b"\0")
            self._add(start // self._size + 1, page)
        self._most = sum(map(len, self._copies.values())) * self._size

    def _add(self, number: int, page: bytes) -> None:
        if page not in self._copies[number]:
            self._copies[number].append(page)

    def records(self, counts: Collection[int]) -> Iterator[Record]:
        """Each (rowid, values) with one of these numbers of columns; text that is not UTF-8 as
        `raw.decoded` reads it."""
        for number, copies in self._copies.items():
            for page in copies:
                for start in self._cells(page, _FILE_HEADER_BYTES if number == 1 else 0):
                    for row, values in self._cell(page, start):
                        if len(values) in counts:
                            yield row, values

    def _cells(self, page: bytes, head: int) -> Iterator[int]:
        """Where rows may begin: where the page says, or anywhere in a page whose head is wrong."""
        kind = page[head]
        if kind in _OTHER_KINDS:
            return
        count = struct.unpack_from(">H", page, head + 3)[0]
        first = head + 8 + 2 * count
        if kind == _TABLE_LEAF and first <= self._size:
            starts = struct.unpack_from(f">{count}H", page, head + 8)
            if all(first <= start < self._size for start in starts):
                yield from starts
                return
        if any(page):
            yield from range(head, self._size - 2)

    def _cell(self, page: bytes, start: int) -> Iterator[Record]:
        try:
            length, at = _varint(page, start)
            row, at = _varint(page, at)
        except IndexError:
            return
        if not 2 <= length <= self._most:
            return
        local = self._local(length)
        if local == length:
            payloads = [page[at : at + length]]
        elif at + local + 4 <= self._size:
            following = struct.unpack_from(">I", page, at + local)[0]
            payloads = self._with_overflow(page[at : at + local], following, length)
        else:
            return
        for payload in payloads:
            values = _record(payload) if len(payload) == length else None
            if values is not None:
                yield row, values

    def _local(self, length: int) -> int:
        """How much of a payload stands in the page itself."""
        most = self._size - 35
        if length <= most:
            return length
        least = (self._size - 12) * 32 // 255 - 23
        found = least + (length - least) % (self._size - 4)
        return found if found <= most else least

    def _with_overflow(self, begin: bytes, following: int, length: int) -> list[bytes]:
        """The payload with its overflow pages, in each of their copies."""
        if begin[:1] == b"\0" or _record_head(begin) is None:
            return []  # of a page whose head is wrong: no row begins here
        found = []
        for copy in range(_MOST_COPIES):
            payload, number, seen, more = bytearray(begin), following, set[int](), False
            while len(payload) < length and number in self._copies and number not in seen:
                seen.add(number)
                copies = self._copies[number]
                more = more or copy + 1 < len(copies)
                page = copies[min(copy, len(copies) - 1)]
                payload += page[4 : 4 + length - len(payload)]
                number = struct.unpack_from(">I", page, 0)[0]
            found.append(bytes(payload))
            if not more:
                break
        return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 1 to 9 bytes, and where it ends. IndexError where the data ends before."""
    value = 0
    for count in range(9):
        byte = data[at + count]
        if count == 8:
            value = value << 8 | byte
            break
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    if value >= 1 << 63:
        value -= 1 << 64
    return value, at + count + 1


def _record_head(payload: bytes) -> tuple[list[int], int] | None:
    """The types of the values of a record and where these begin; None for what is no record."""
    try:
        end, at = _varint(payload, 0)
        if not at <= end <= len(payload):
            return None
        kinds: list[int] = []
        while at < end and len(kinds) <= _MOST_COLUMNS:
            kind, at = _varint(payload, at)
            kinds.append(kind)
    except IndexError:
        return None
    good = at == end and all(kind >= 0 and kind not in (10, 11) for kind in kinds)
    return (kinds, end) if good else None


def _record(payload: bytes) -> list[object] | None:
    """The values of a record, None for what is none."""
    head = _record_head(payload)
    if head is None:
        return None
    kinds, at = head
    values = []
    for kind in kinds:
        size = _size_of(kind)
        content = payload[at : at + size]
        if len(content) != size:
            return None
        at += size
        values.append(_value(kind, content))
    return values if at == len(payload) else None


def _size_of(kind: int) -> int:
    if kind >= 12:
        return (kind - 12) // 2
    return 8 if kind == 7 else _INTEGERS.get(kind, 0)


def _value(kind: int, content: bytes) -> object:
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    if kind == 7:
        return struct.unpack(">d", content)[0]
    if kind < 12:
        return int.from_bytes(content, "big", signed=True)
    return decoded(content) if kind % 2 else content
