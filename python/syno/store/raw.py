"""Rows as the database has them, without making Python values of JSON and truth values.

Text that is no UTF-8 is read with surrogates in place of the wrong bytes, so that a damaged row is
compared with its seal like any other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

from sqlalchemy import Connection, CursorResult, Row, Table
from sqlalchemy.exc import OperationalError

_FETCHED = 5000  # rows at once

# A row of a query, by the names of its columns.
NamedRow = Row[tuple[Any, ...]]
# A row or a document as the database has it, which may be damaged: nothing is known of its values.
Values = dict[str, Any]


def decoded(value: bytes) -> str:
    """Text that may be no UTF-8."""
    return value.decode("utf-8", "surrogateescape")


@contextlib.contextmanager
def lenient(connection: Connection) -> Iterator[None]:
    """Text that is no UTF-8 is no error while the block runs (PostgreSQL has none)."""
    if connection.dialect.name != "sqlite":
        yield
        return
    driver = connection.connection.dbapi_connection
    assert driver is not None  # it is connected
    before, driver.text_factory = driver.text_factory, decoded
    try:
        yield
    finally:
        driver.text_factory = before


def raw_rows(connection: Connection, table: Table) -> list[Values]:
    """All rows in the order of their primary key."""
    names = [column.name for column in table.columns]
    order = ", ".join(f'"{column.name}"' for column in table.primary_key.columns)
    listed = ", ".join(f'"{name}"' for name in names)
    query = f'SELECT {listed} FROM "{table.name}" ORDER BY {order}'
    try:
        return _named(names, connection.exec_driver_sql(query))
    except (OperationalError, UnicodeDecodeError):
        # There is text that is no UTF-8. Decoding each text in Python takes twice as long.
        with lenient(connection):
            return _named(names, connection.exec_driver_sql(query))


def _named(names: list[str], result: CursorResult[tuple[object, ...]]) -> list[Values]:
    return [
        dict(zip(names, row, strict=True))
        for row in chain.from_iterable(result.partitions(_FETCHED))
    ]


def row_name(table: Table, values: Values) -> str:
    """How a message names a row: "table event, row (1, 7)"."""
    key = [values.get(column.name) for column in table.primary_key.columns]
    return f"table {table.name}, row {key[0] if len(key) == 1 else tuple(key)}"
