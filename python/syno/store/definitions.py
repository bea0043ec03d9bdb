"""The definitions of tables, indexes and triggers in a SQLite file, and whether one changed.

A damaged definition does harm that no row shows: a lost index makes a search slow, a changed
condition refuses good rows. How SQL is spelt depends on how a store came about, so each store has
the digests of its own definitions, written down by the last migration (`syno_schema.definitions`).
PostgreSQL looks after its catalogue itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from syno._util.checks import parsed_json
from syno.store import schema
from syno.store.raw import lenient, raw_rows
from syno.store.seals import digest_of, seal_of_stored


def current(connection: Connection) -> dict[str, str]:
    """By name, the digest of each definition; empty where that is not SQLite's."""
    if connection.dialect.name != "sqlite":
        return {}
    # What SQLite makes itself, such as statistics, has names of its own.
    query = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%'"
    with lenient(connection):
        rows = connection.exec_driver_sql(query + " ESCAPE '!'").all()
    return {f"{row[0]} {row[1]}": digest_of(list(row)) for row in rows}


def findings(connection: Connection) -> Iterator[tuple[str, str]]:
    """(where, what) of each definition that is not the one written down."""
    rows = raw_rows(connection, schema.schema_version)
    for row in rows:
        if row["seal"] != seal_of_stored(schema.schema_version, row):
            where = f"table {schema.schema_version.name}, row {row['version']}"
            yield where, "its content is not what was written"
            return
    written = parsed_json(rows[-1]["definitions"])
    found = current(connection)
    for name in sorted(written.keys() | found.keys()):
        if name not in found:
            yield name, "it is missing"
        elif name not in written:
            yield name, "it does not belong to Syno"
        elif written[name] != found[name]:
            yield name, "its definition is not the one that was written"
