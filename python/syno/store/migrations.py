"""Numbered migrations: each takes a store from the version before it to its own.

A migration is data: SQL that SQLite and PostgreSQL both understand. All that a store needs run in
one transaction, so a store is at one version or at the next, never between. The tables of a new
store come from `schema.py`; a test brings a store of version 1 here and compares the two.
"""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, inspect, select, text

from syno._errors import UserError
from syno.store import schema
from syno.store.errors import not_a_store
from syno.store.records import utc_now

_LOCK = 0x73796E6F  # "syno": any fixed number


@dataclass(frozen=True)
class Migration:
    """One step: `version` is where it arrives."""

    version: int
    why: str
    statements: tuple[str, ...]


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
)


def stored_version(connection: Connection, where: str) -> int:
    """The version of the store, 0 for an empty database; UserError when it is something else."""
    tables = set(inspect(connection).get_table_names())
    if not tables:
        return 0
    if schema.schema_version.name not in tables:
        found = ", ".join(sorted(tables)[:4])
        raise not_a_store(where, f"a database with other tables ({found})")
    version = connection.scalar(select(func.max(schema.schema_version.c.version)))
    if version is None:
        raise not_a_store(where, f"its table {schema.schema_version.name} is empty")
    return int(version)


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
    if connection.dialect.name == "postgresql":
        # Two processes may open a new database at once; SQLite has one writer anyway.
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    version = stored_version(connection, where)
    check_version(version, where)
    if version == schema.VERSION:
        return
    if version == 0:
        schema.metadata.create_all(connection)
        _stamp(connection, schema.VERSION)
        return
    for step in MIGRATIONS:
        if step.version > version:
            for statement in step.statements:
                connection.execute(text(statement))
            _stamp(connection, step.version)


def _stamp(connection: Connection, version: int) -> None:
    connection.execute(
        insert(schema.schema_version).values(
            version=version, written_by=_package_version(), applied=utc_now()
        )
    )


def _package_version() -> str:
    try:
        return importlib.metadata.version("syno")
    except importlib.metadata.PackageNotFoundError:  # run from a source tree
        return "source"
