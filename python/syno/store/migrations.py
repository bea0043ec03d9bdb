"""Numbered migrations: each takes a store from the version before it to its own.

A migration is data: SQL that SQLite and PostgreSQL both understand; version 5 also seals all rows
(`sealing.py`). All that a store needs run in one transaction, so a store is at one version or the
next, never between. The tables of a new store come from `schema.py`; a test brings a store of
version 1 here and compares the two.

The rows of `syno_schema` are sealed. A later version keeps their first columns and that seal: by
them a store of a newer Syno is told from a damaged one.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, inspect, select, text, update

from syno._util.errors import UserError
from syno.store import definitions, schema
from syno.store.check import Finding
from syno.store.database import id_column, lock_database
from syno.store.errors import damaged, not_a_store
from syno.store.raw import raw_rows, row_name
from syno.store.records import utc_now
from syno.store.sealing import seal_store
from syno.store.seals import seal_of_stored

_ID = "{id}"  # the column of a table whose ids the database gives: see `database.id_column`


@dataclass(frozen=True)
class Migration:
    """One step: `version` is where it arrives.

    step: runs behind the statements; it changes nothing where it finds damage.
    """

    version: int
    why: str
    statements: tuple[str, ...]
    step: Callable[[Connection], list[Finding]] | None = None


MIGRATIONS = (
    Migration(
        2,
        "a proposal that ends its process each time must not be handed out for ever; joins",
        (
            "ALTER TABLE proposal ADD COLUMN attempts INTEGER DEFAULT 0 NOT NULL",
            "CREATE INDEX proposal_by_state ON proposal (study_id, state)",
            "CREATE INDEX operator_by_key ON operator (key)",
            "CREATE INDEX baseline_by_evaluation ON baseline (evaluation_id)",
            "CREATE INDEX measurement_by_evaluation ON measurement (evaluation_id)",
        ),
    ),
    Migration(
        3,
        "an operator that crashes, hangs or eats memory twice must not be proposed again",
        (
            "CREATE TABLE quarantine ("
            "study_id INTEGER NOT NULL REFERENCES study (id), "
            "operator_id INTEGER NOT NULL REFERENCES operator (id), "
            "failures INTEGER NOT NULL, kind TEXT NOT NULL, reason TEXT NOT NULL, "
            "updated TEXT NOT NULL, "
            "PRIMARY KEY (study_id, operator_id))",
        ),
    ),
    Migration(
        4,
        "an operator climbs a ladder of fidelities and has a result at each rung",
        (
            "ALTER TABLE proposal ADD COLUMN rung_index INTEGER DEFAULT 0 NOT NULL",
            "ALTER TABLE evaluation ADD COLUMN rung_index INTEGER DEFAULT 0 NOT NULL",
        ),
    ),
    Migration(
        5,
        "damage must not go unnoticed: rows have seals, logs are chains",
        (
            *(
                f"ALTER TABLE {table} ADD COLUMN seal TEXT DEFAULT '' NOT NULL"
                for table in ("specification", "environment", "study", "proposal", "quarantine")
            ),
            *(
                f"ALTER TABLE {table} ADD COLUMN seal TEXT DEFAULT '' NOT NULL"
                for table in ("evaluation", "verification", "baseline", "measurement", "artifact")
            ),
            "ALTER TABLE operator ADD COLUMN key_version INTEGER DEFAULT 0 NOT NULL",
            "ALTER TABLE operator ADD COLUMN seal TEXT DEFAULT '' NOT NULL",
            "ALTER TABLE study ADD COLUMN events INTEGER DEFAULT 0 NOT NULL",
            "ALTER TABLE study ADD COLUMN head TEXT DEFAULT '' NOT NULL",
            "ALTER TABLE event ADD COLUMN stored TEXT DEFAULT '{}' NOT NULL",
            "ALTER TABLE event ADD COLUMN digest TEXT DEFAULT '' NOT NULL",
            "ALTER TABLE syno_schema ADD COLUMN definitions TEXT DEFAULT '{}' NOT NULL",
            "ALTER TABLE syno_schema ADD COLUMN seal TEXT DEFAULT '' NOT NULL",
        ),
        seal_store,
    ),
    Migration(
        6,
        "nothing of Syno wrote into the table `artifact`",
        ("DROP TABLE artifact",),
    ),
    Migration(
        7,
        "processes that evaluate what others propose announce themselves, and their leases have "
        "tokens",
        (
            "CREATE TABLE worker ("
            f"{_ID}, name TEXT NOT NULL UNIQUE, "
            "tags TEXT NOT NULL, environment_id INTEGER NOT NULL REFERENCES environment (id), "
            "started TEXT NOT NULL, heartbeat TEXT NOT NULL, ended TEXT, "
            "seal TEXT DEFAULT '' NOT NULL)",
            "CREATE TABLE lease ("
            f"{_ID}, "
            "proposal_id INTEGER NOT NULL, rung_index INTEGER NOT NULL, worker TEXT NOT NULL, "
            "taken TEXT NOT NULL, ended TEXT, ending TEXT, seal TEXT DEFAULT '' NOT NULL)",
            "CREATE INDEX lease_by_proposal ON lease (proposal_id)",
            "CREATE TABLE driver ("
            "study_id INTEGER NOT NULL PRIMARY KEY REFERENCES study (id), "
            "holder TEXT NOT NULL, token INTEGER NOT NULL, taken TEXT NOT NULL, "
            "heartbeat TEXT NOT NULL, ended TEXT, seal TEXT DEFAULT '' NOT NULL)",
        ),
    ),
    Migration(
        8,
        "some answers are evaluated again by another worker, and workers that lie are found",
        (
            "CREATE TABLE spot_check ("
            "study_id INTEGER NOT NULL REFERENCES study (id), sequence INTEGER NOT NULL, "
            "proposal_id INTEGER NOT NULL, worker TEXT NOT NULL, created TEXT NOT NULL, "
            "state TEXT NOT NULL, attempts INTEGER NOT NULL, lease TEXT, heartbeat TEXT, "
            "checker TEXT, first TEXT, second TEXT, seal TEXT DEFAULT '' NOT NULL, "
            "PRIMARY KEY (study_id, sequence))",
            "CREATE INDEX spot_check_by_state ON spot_check (study_id, state)",
            "CREATE TABLE distrust ("
            "study_id INTEGER NOT NULL REFERENCES study (id), worker TEXT NOT NULL, "
            "reason TEXT NOT NULL, created TEXT NOT NULL, seal TEXT DEFAULT '' NOT NULL, "
            "PRIMARY KEY (study_id, worker))",
        ),
    ),
    Migration(
        9,
        "two processes that work on one adaptation must not find the same thing twice",
        (
            "CREATE TABLE finding ("
            f"{_ID}, study_id INTEGER NOT NULL REFERENCES study (id), digest TEXT NOT NULL, "
            "seal TEXT DEFAULT '' NOT NULL, UNIQUE (study_id, digest))",
        ),
    ),
    Migration(
        10,
        "whoever can write a lie into a store can hide it from a second worker, too",
        ("DROP TABLE spot_check", "DROP TABLE distrust"),
    ),
)


def stored_version(connection: Connection, where: str) -> int:
    """The version of the store, 0 for an empty database; UserError when it is something else."""
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return 0
    if schema.schema_version.name not in tables:
        if len(tables & schema.metadata.tables.keys()) > 1:  # one alone may be somebody else's
            raise damaged(where, [f"table {schema.schema_version.name}: it is missing"])
        found = ", ".join(sorted(tables)[:4])
        raise not_a_store(where, f"a database with other tables ({found})")
    version = connection.scalar(select(func.max(schema.schema_version.c.version)))
    if not isinstance(version, int):
        raise damaged(where, [f"table {schema.schema_version.name}: it has no version"])
    return version


def sealed_version(connection: Connection, where: str) -> int:
    """As `stored_version`; DamagedError where that row has changed since it was written."""
    version = stored_version(connection, where)
    if version == 0:
        return 0
    columns = {c["name"] for c in inspect(connection).get_columns(schema.schema_version.name)}
    if "seal" in columns:
        row = raw_rows(connection, schema.schema_version)[-1]
        if row["seal"] != seal_of_stored(schema.schema_version, row):
            name = row_name(schema.schema_version, row)
            raise damaged(where, [f"{name}: its content is not what was written"])
    return version


def check_version(version: int, where: str) -> None:
    """UserError when a newer Syno wrote the store."""
    if version > schema.VERSION:
        raise UserError(
            f"the store '{where}' has version {version}, this Syno reads up to version "
            f"{schema.VERSION}\n"
            "  a newer Syno wrote it\n"
            "  what to do: install that Syno or a later one, or choose another store"
        )


def migrate(connection: Connection, where: str) -> None:
    """Creates the tables of an empty database, or brings an older store up to date.

    Runs inside the caller's transaction, which must be a writing one.
    """
    lock_database(connection)
    version = stored_version(connection, where)
    check_version(version, where)
    if version == schema.VERSION:
        return
    if version == 0:
        schema.metadata.create_all(connection)
        _stamp(connection, schema.VERSION)
        _seal_versions(connection)
        return
    for step in MIGRATIONS:
        if step.version > version:
            for statement in step.statements:
                connection.execute(text(statement.replace(_ID, id_column(connection))))
            found = step.step(connection) if step.step is not None else []
            if found:
                raise damaged(where, map(str, found))
            _stamp(connection, step.version)
    _seal_versions(connection)


def _stamp(connection: Connection, version: int) -> None:
    connection.execute(
        insert(schema.schema_version).values(
            version=version, written_by=_package_version(), applied=utc_now()
        )
    )


def _seal_versions(connection: Connection) -> None:
    """Writes down the definitions as they are now, and seals all rows."""
    table = schema.schema_version
    last = table.c.version == schema.VERSION
    connection.execute(
        update(table).where(last).values(definitions=definitions.current(connection))
    )
    for row in raw_rows(connection, table):
        made = seal_of_stored(table, row)
        same = table.c.version == row["version"]
        connection.execute(update(table).where(same).values(seal=made))


def _package_version() -> str:
    try:
        return importlib.metadata.version("syno")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree
        return "source"
