"""Inserting rows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert, select

from syno._errors import InternalError


def add(connection: Connection, table: Any, **values: Any) -> int:
    """Inserts one row and gives its id."""
    key = connection.execute(insert(table).values(**values)).inserted_primary_key
    if key is None:
        raise InternalError(f"no key came back from {table.name}")
    return int(key[0])


def find_or_add(connection: Connection, table: Any, same: dict[str, Any], **rest: Any) -> int:
    """The id of the row with the values `same`, inserted with `rest` when there is none."""
    query = select(table.c.id).where(*(table.c[name] == value for name, value in same.items()))
    found = connection.scalar(query)
    return int(found) if found is not None else add(connection, table, **same, **rest)
