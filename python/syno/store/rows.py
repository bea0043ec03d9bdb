"""Writing rows, each with its seal. Nothing else in Syno inserts or changes a sealed row."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Table,
    Update,
    bindparam,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from syno._util.errors import InternalError
from syno.store.database import is_server
from syno.store.seals import seal

_KEY = "key_of_"  # begins the names of parameters that say which row is meant


class Rows:
    """The rows that an event stores, each by its id with its seal, and what it takes back.

    removed: ids of evaluations that an earlier event stored; reopened: ids of proposals that wait
    for an answer again. (Logs of versions up to 9 may also have ids of other rows, `taken_back`.)
    """

    def __init__(self) -> None:
        self._stored: dict[str, dict[str, str]] = {}
        self.removed: list[int] = []
        self.reopened: list[int] = []

    def note(self, table: Table, identity: int, row_seal: str) -> None:
        """Says that the event stores this row, or refers to it."""
        self._stored.setdefault(table.name, {})[str(identity)] = row_seal

    def to_json(self) -> dict[str, object]:
        """As the event keeps it: what is empty is left out."""
        taken = {"removed": self.removed, "reopened": self.reopened}
        return {**self._stored, **{name: ids for name, ids in taken.items() if ids}}


def put(connection: Connection, table: Table, **values: object) -> tuple[tuple[int, ...], str]:
    """Inserts one row and gives its primary key and its seal."""
    made = seal(table, values)
    key = connection.execute(insert(table), {**values, "seal": made}).inserted_primary_key
    if key is None:
        raise InternalError(f"no key came back from {table.name}")
    return tuple(key), made


def add(connection: Connection, table: Table, rows: Rows | None = None, /, **values: object) -> int:
    """Inserts one row, noted in `rows`, and gives its id."""
    key, made = put(connection, table, **values)
    if rows is not None:
        rows.note(table, int(key[0]), made)
    return int(key[0])


def find_or_add(
    connection: Connection,
    table: Table,
    same: Mapping[str, object],
    rows: Rows | None = None,
    /,
    **rest: object,
) -> int:
    """The id of the row with the values `same`, inserted with `rest` when there is none; noted in
    `rows`. Another process may insert it at the same moment."""
    column = table.c
    query = select(column.id, column.seal).where(*(column[n] == value for n, value in same.items()))
    found = connection.execute(query).first()
    if found is None:
        values = {**same, **rest}
        made = seal(table, values)
        # An error would end a transaction of PostgreSQL. SQLite has no other writer at the moment.
        kind = postgresql.insert if is_server(connection) else sqlite.insert
        added = kind(table).values(**values, seal=made).on_conflict_do_nothing()
        identity = connection.scalar(added.returning(column.id))
        if identity is not None:
            if rows is not None:
                rows.note(table, identity, made)
            return int(identity)
        found = connection.execute(query).one()
    if rows is not None:
        rows.note(table, found.id, found.seal)
    return int(found.id)


def rewrite(connection: Connection, table: Table, row: RowMapping, **values: object) -> None:
    """Changes one row, which the transaction has locked and read with all its columns."""
    given = {name: _value(value, row) for name, value in values.items()}
    made = seal(table, {**row, **given})
    keys = {f"{_KEY}{column.name}": row[column.name] for column in table.primary_key.columns}
    connection.execute(_of_key(table), {**given, "seal": made, **keys})


@functools.cache
def _of_key(table: Table) -> Update:
    """The change of one row, made once: values are parameters of its execution."""
    same = [column == bindparam(f"{_KEY}{column.name}") for column in table.primary_key.columns]
    return update(table).where(*same)


def change(
    connection: Connection, table: Table, *where: ColumnElement[bool], **values: object
) -> int:
    """Changes the rows that meet `where`, seals them anew, and gives how many there were.

    A value may be a function of the row as it was: `attempts=lambda row: row["attempts"] + 1`.
    """
    found = connection.execute(select(table).where(*where).with_for_update()).mappings().all()
    for row in found:
        rewrite(connection, table, row, **values)
    return len(found)


def _value(value: object, row: RowMapping) -> object:
    if isinstance(value, ColumnElement):
        raise InternalError("a sealed row is changed by values, or by functions of the row")
    return value(row) if callable(value) else value
