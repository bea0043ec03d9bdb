"""A Parquet file with one column of texts, as Syne Tune reads the configurations of a blackbox.

The file has one row group with one page of the plain encoding, without compression. Its metadata
are structures of Thrift's compact protocol (https://parquet.apache.org/docs/file-format/).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

_MAGIC = b"PAR1"
# Types of the compact protocol.
_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
# Enumerations of the format.
_BYTE_ARRAY, _REQUIRED, _UTF8, _PLAIN, _RLE, _UNCOMPRESSED, _DATA_PAGE = 6, 0, 0, 0, 3, 0, 0

_Field = tuple[int, int, bytes]


def write_text_column(path: Path, name: str, values: Sequence[str]) -> None:
    """Write a file with one column of texts, which are never missing."""
    encoded = [value.encode() for value in values]
    data = b"".join(struct.pack("<I", len(value)) + value for value in encoded)
    rows = len(encoded)
    page = _struct(
        _int(1, _DATA_PAGE),
        _int(2, len(data)),
        _int(3, len(data)),
        (5, _STRUCT, _struct(_int(1, rows), _int(2, _PLAIN), _int(3, _RLE), _int(4, _RLE))),
    )
    size = len(page) + len(data)
    root = _struct(_text(4, "schema"), _int(5, 1))
    leaf = _struct(_int(1, _BYTE_ARRAY), _int(3, _REQUIRED), _text(4, name), _int(6, _UTF8))
    column = _struct(
        _int(1, _BYTE_ARRAY),
        (2, _LIST, _list(_I32, [_zigzag(_PLAIN)])),
        (3, _LIST, _list(_BINARY, [_bytes(name)])),
        _int(4, _UNCOMPRESSED),
        _long(5, rows),
        _long(6, size),
        _long(7, size),
        _long(9, len(_MAGIC)),
    )
    chunk = _struct(_long(2, len(_MAGIC)), (3, _STRUCT, column))
    group = _struct((1, _LIST, _list(_STRUCT, [chunk])), _long(2, size), _long(3, rows))
    footer = _struct(
        _int(1, 1),
        (2, _LIST, _list(_STRUCT, [root, leaf])),
        _long(3, rows),
        (4, _LIST, _list(_STRUCT, [group])),
        _text(6, "syno"),
    )
    ending = struct.pack("<I", len(footer)) + _MAGIC
    path.write_bytes(_MAGIC + page + data + footer + ending)


def _struct(*fields: _Field) -> bytes:
    """Encode a structure; ids of fields ascend by at most 15."""
    found, last = b"", 0
    for number, kind, content in fields:
        found += bytes([(number - last) << 4 | kind]) + content
        last = number
    return found + b"\0"


def _int(number: int, value: int) -> _Field:
    return number, _I32, _zigzag(value)


def _long(number: int, value: int) -> _Field:
    return number, _I64, _zigzag(value)


def _text(number: int, value: str) -> _Field:
    return number, _BINARY, _bytes(value)


def _bytes(value: str) -> bytes:
    return _varint(len(value.encode())) + value.encode()


def _list(kind: int, items: Sequence[bytes]) -> bytes:
    """Encode a list of fewer than 15 items."""
    return bytes([len(items) << 4 | kind]) + b"".join(items)


def _zigzag(value: int) -> bytes:
    return _varint(2 * value if value >= 0 else -2 * value - 1)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
