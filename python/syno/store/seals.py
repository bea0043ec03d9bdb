"""The seal of a row: a digest of its content, by which damage to it is noticed and named.

The content is what the database holds, not what Python makes of it: JSON as its text, truth values
as 0 and 1. So a row is sealed alike when it is written and when it is read, on every database. Ids
that the database gives are no part of it; whoever refers to a row names id and seal.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

from sqlalchemy import Boolean, Column, Float, Integer, Table

from syno.store import schema
from syno.store.records import canonical_json

_encode = json.JSONEncoder(separators=(",", ":")).encode

# Not in a seal: ids and seals, and what the log says of a study.
_LEFT_OUT = {"id", "seal"}
_LEFT_OUT_OF = {"study": {"events", "head"}}
_SEALED_OF_EVENTS = ("sequence", "kind", "data", "created", "stored")


def digest_of(content: object) -> str:
    """32 hexadecimal digits that name a value of lists, texts and numbers."""
    return _digest(_encode(content))


@functools.cache
def sealed_columns(table: Table) -> tuple[Column[Any], ...]:
    """The columns that a seal covers, in order."""
    left_out = _LEFT_OUT | _LEFT_OUT_OF.get(table.name, set())
    return tuple(column for column in table.columns if column.name not in left_out)


@functools.cache
def _sealed_names(table: Table) -> tuple[str, ...]:
    return tuple(str(column.name) for column in sealed_columns(table))


def seal(table: Table, values: Mapping[str, object]) -> str:
    """The seal of a row that is to be written with these values, as Python has them."""
    columns = sealed_columns(table)
    return _seal(table, [_stored(column, values.get(column.name)) for column in columns])


def seal_of_stored(table: Table, values: Mapping[str, object]) -> str:
    """The seal of a row with these values, as the database gave them."""
    return _seal(table, map(values.get, _sealed_names(table)))


def event_digest(before: str, values: Mapping[str, object]) -> str:
    """The digest of an event that follows the one with the digest `before`; its values as the
    database has them."""
    return _digest_of_values([before, *[values[name] for name in _SEALED_OF_EVENTS]])


def _seal(table: Table, values: Iterable[object]) -> str:
    return _digest_of_values([str(table.name), *values])


def _digest_of_values(values: list[Any]) -> str:
    """`digest_of` of values as a database gives them. All rows pass through here when a store is
    opened, and `json.dumps` takes longer for so short a list."""
    return _digest(
        "[" + ",".join([_TEXTS.get(type(value), _text_as_stored)(value) for value in values]) + "]"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _stored(column: Column[Any], value: Any) -> object:
    """What the database will give for a value that is written into this column."""
    if value is None:
        return None
    if isinstance(column.type, schema.JsonText):
        return canonical_json(value)
    if isinstance(column.type, Float):
        return float(value)
    if isinstance(column.type, (Boolean, Integer)):
        return int(value)
    return value


def as_stored(value: object) -> object:
    """A value of the database as a seal has it: alike for every database."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return value + 0.0  # SQLite keeps no sign of zero
    if isinstance(value, (bytes, bytearray, memoryview)):
        return hashlib.sha256(bytes(value)).hexdigest()
    return value


def _text_as_stored(value: object) -> str:
    return _encode(as_stored(value))


def _text_of_float(value: float) -> str:
    is_finite = value - value == 0.0
    return float.__repr__(value + 0.0) if is_finite else _text_as_stored(value)


# `_text_as_stored` of the types that most values have, in less time.
_TEXTS: dict[type, Callable[[Any], str]] = {
    str: encode_basestring_ascii,
    int: int.__repr__,
    type(None): lambda _: "null",
    float: _text_of_float,
}
