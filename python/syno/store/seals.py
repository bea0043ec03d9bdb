"""The seal of a row: a digest of its content, by which damage to it is noticed and named.

The content is what the database holds, not what Python makes of it: JSON as its text, truth values
as 0 and 1. So a row is sealed alike when it is written and when it is read, on every database. Ids
that the database gives are no part of it; whoever refers to a row names id and seal.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Boolean, Column, Float, Integer, Table

from syno import _core
from syno.store import schema
from syno.store.raw import Values
from syno.store.records import canonical_json

# Not in a seal: ids and seals, and what the log says of a study.
_LEFT_OUT = {"id", "seal"}
_LEFT_OUT_OF = {"study": {"events", "head"}}
_SEALED_OF_EVENTS = ("sequence", "kind", "data", "created", "stored")


def digest_of(content: object) -> str:
    """32 hexadecimal digits that name a value of lists, texts and numbers."""
    text = json.dumps(content, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@functools.cache
def sealed_columns(table: Table) -> tuple[Column[object], ...]:
    """The columns that a seal covers, in order."""
    left_out = _LEFT_OUT | _LEFT_OUT_OF.get(table.name, set())
    return tuple(column for column in table.columns if column.name not in left_out)


@functools.cache
def _sealed_names(table: Table) -> list[str]:
    return [str(column.name) for column in sealed_columns(table)]


def seal(table: Table, values: Mapping[str, object]) -> str:
    """The seal of a row that is to be written with these values, as Python has them."""
    columns = sealed_columns(table)
    return _core.seal(
        [str(table.name), *(_stored(column, values.get(column.name)) for column in columns)]
    )


def seals_of_stored(table: Table, rows: list[Values]) -> list[str]:
    """The seals of rows with these values, as the database gave them."""
    return _core.seals(str(table.name), _sealed_names(table), rows)


def seal_of_stored(table: Table, values: Mapping[str, object]) -> str:
    """The same of one row."""
    return seals_of_stored(table, [dict(values)])[0]


def event_digest(before: str, values: Mapping[str, object]) -> str:
    """The digest of an event that follows the one with the digest `before`; its values as the
    database has them."""
    return _core.seal([before, *[values[name] for name in _SEALED_OF_EVENTS]])


def _stored(column: Column[object], value: Any) -> object:
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
