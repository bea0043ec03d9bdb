"""The seal of a row: a digest of its content, by which damage to it is noticed and named.

The content is what the database holds, not what Python makes of it: JSON as its text, truth values
as 0 and 1. So a row is sealed alike when it is written and when it is read, on every database. Ids
that the database gives are no part of it; whoever refers to a row names id and seal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Boolean, Column, Float, Integer, Table

from syno.store import schema
from syno.store.records import canonical_json

_encode = json.JSONEncoder(separators=(",", ":")).encode

# Not in a seal: ids and seals, and what the log says of a study.
_LEFT_OUT = {"id", "seal"}
_LEFT_OUT_OF = {"study": {"events", "head"}}


def digest_of(content: object) -> str:
    """32 hexadecimal digits that name a value of lists, texts and numbers."""
    text = _encode(content)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def sealed_columns(table: Table) -> list[Column[Any]]:
    """The columns that a seal covers, in order."""
    left_out = _LEFT_OUT | _LEFT_OUT_OF.get(table.name, set())
    return [column for column in table.columns if column.name not in left_out]


def seal(table: Table, values: Mapping[str, object]) -> str:
    """The seal of a row that is to be written with these values, as Python has them."""
    columns = sealed_columns(table)
    return _seal(table, [_stored(column, values.get(column.name)) for column in columns])


def seal_of_stored(table: Table, values: Mapping[str, object]) -> str:
    """The seal of a row with these values, as the database gave them."""
    return _seal(table, [as_stored(values.get(column.name)) for column in sealed_columns(table)])


def event_digest(before: str, values: Mapping[str, object]) -> str:
    """The digest of an event that follows the one with the digest `before`; its values as the
    database has them."""
    names = ("sequence", "kind", "data", "created", "stored")
    return digest_of([before, *(as_stored(values[name]) for name in names)])


def _seal(table: Table, values: Sequence[object]) -> str:
    return digest_of([table.name, *values])


def _stored(column: Column[Any], value: Any) -> object:
    """What the database will give for a value that is written into this column."""
    if value is None:
        return None
    if isinstance(column.type, schema.JsonText):
        return canonical_json(value)
    if isinstance(column.type, Float):
        return as_stored(float(value))
    if isinstance(column.type, (Boolean, Integer)):
        return int(value)
    return as_stored(value)


def as_stored(value: object) -> object:
    """A value of the database as a seal has it: alike for every database."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return value + 0.0  # SQLite keeps no sign of zero
    if isinstance(value, (bytes, bytearray, memoryview)):
        return hashlib.sha256(bytes(value)).hexdigest()
    return value
