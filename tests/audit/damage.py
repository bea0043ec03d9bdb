"""Damage to a SQLite store: of its bytes, and of its rows by single statements of SQL.

Each is a function of (path, random numbers) that changes the store and says what it did.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, random.Random], str]

PAGE = 4096
# Written anew from outside the log at any time: whether it changes is nobody's business.
_TABLES = (
    "specification",
    "operator",
    "environment",
    "study",
    "event",
    "proposal",
    "quarantine",
    "evaluation",
    "verification",
    "baseline",
    "measurement",
    "finding",
    "syno_schema",
)


def flip_bit(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    at, bit = rng.randrange(len(content)), rng.randrange(8)
    content[at] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {at} flipped"


def flip_header(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    at, bit = rng.randrange(100), rng.randrange(8)
    content[at] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {at} of the header flipped"


def flip_definition(path: Path, rng: random.Random) -> str:
    """A bit of the SQL of a table or an index."""
    content = bytearray(path.read_bytes())
    starts = [found.start() for found in re.finditer(rb"CREATE (TABLE|INDEX)", content)]
    at, bit = rng.choice(starts) + rng.randrange(200), rng.randrange(8)
    content[at] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {at}, of a definition, flipped"


def overwrite(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    length = rng.choice((2, 8, 40, 300, 5000))
    at = rng.randrange(len(content))
    run = rng.choice((b"\0", b"\xff", rng.randbytes(1)))
    end = min(len(content), at + length)
    content[at:end] = rng.randbytes(end - at) if rng.random() < 0.5 else run * (end - at)
    path.write_bytes(content)
    return f"bytes {at} to {end} overwritten"


def cut(path: Path, rng: random.Random) -> str:
    content = path.read_bytes()
    gone = rng.choice((1, 1275, PAGE, rng.randrange(1, len(content)), len(content)))
    path.write_bytes(content[: len(content) - gone])
    return f"the last {gone} of {len(content)} bytes cut"


def grow(path: Path, rng: random.Random) -> str:
    more = rng.choice((1, 100, PAGE))
    with path.open("ab") as stream:
        stream.write(rng.randbytes(more))
    return f"{more} bytes appended"


def swap_pages(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    a, b = sorted(rng.sample(range(len(content) // PAGE), 2))
    first, second = content[a * PAGE : (a + 1) * PAGE], content[b * PAGE : (b + 1) * PAGE]
    content[a * PAGE : (a + 1) * PAGE], content[b * PAGE : (b + 1) * PAGE] = second, first
    path.write_bytes(content)
    return f"pages {a + 1} and {b + 1} swapped"


def zero_page(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    page = rng.randrange(len(content) // PAGE)
    content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(content)
    return f"page {page + 1} zeroed"


def damage_log(path: Path, rng: random.Random) -> str:
    log = path.with_name(path.name + "-wal")
    content = bytearray(log.read_bytes())
    kind = rng.choice(("flip", "flip header", "cut", "zero", "remove", "empty"))
    if kind.startswith("flip"):
        at = rng.randrange(32 if kind == "flip header" else len(content))
        content[at] ^= 1 << rng.randrange(8)
        kind = f"byte {at} flipped"
    elif kind == "cut":
        gone = rng.randrange(1, len(content))
        del content[-gone:]
        kind = f"the last {gone} bytes cut"
    elif kind == "zero":
        at = rng.randrange(len(content) - 100)
        content[at : at + 100] = bytes(100)
        kind = f"bytes {at} to {at + 100} zeroed"
    if kind == "remove":
        log.unlink()
    else:
        log.write_bytes(b"" if kind == "empty" else content)
    return f"the log: {kind}"


def change_column(path: Path, rng: random.Random) -> str:
    """One value of one row becomes another, perhaps one of another type."""
    with Sql(path) as connection:
        table = rng.choice(_TABLES)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        return change_value(connection, table, rng.choice(columns), rng)


def change_value(
    connection: sqlite3.Connection, table: str, column: str, rng: random.Random
) -> str:
    rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    row, before = rng.choice(rows)
    choices = [None, "", "x", "{", "[1]", "a:b", -1, 0, 1, 7.5, b"\xff\xfe", b"", 1 << 62]
    if isinstance(before, int):
        choices += [before + 1, before - 1, str(before) + "x"]
    if isinstance(before, str) and before:
        at = rng.randrange(len(before))
        choices += [before[:at] + chr(ord(before[at]) ^ 1) + before[at + 1 :]] * 5
        choices += [before + " ", before[:-1]]
    if isinstance(before, float):
        choices += [before * 2, -before, before + 1e-9]
    for value in rng.sample(choices, len(choices)):
        if value == before and type(value) is type(before):
            continue
        try:
            text = isinstance(value, bytes) and rng.random() < 0.5
            put = "CAST(? AS TEXT)" if text else "?"
            connection.execute(f"UPDATE {table} SET {column} = {put} WHERE rowid = ?", (value, row))
        except sqlite3.Error:
            continue  # a condition of the table forbids it
        after = connection.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,))
        found = _value(after)
        if found != before or type(found) is not type(before):
            return f"{table}.{column} of row {row}: {before!r:.80} became {value!r:.80}"
    return f"{table}.{column} of row {row}: nothing could be changed"


def _value(cursor: sqlite3.Cursor) -> object:
    try:
        row = cursor.fetchone()
    except sqlite3.Error:  # text that is not UTF-8
        return b""
    return None if row is None else row[0]


def delete_row(path: Path, rng: random.Random) -> str:
    with Sql(path) as connection:
        table = rng.choice([t for t in _TABLES if t not in ("specification", "environment")])
        row = rng.choice(connection.execute(f"SELECT rowid FROM {table}").fetchall())[0]
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row,))
    return f"row {row} of {table} deleted"


def repeat_row(path: Path, rng: random.Random) -> str:
    with Sql(path) as connection:
        table = rng.choice(("baseline", "measurement", "verification", "event", "proposal"))
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        names = [n for n in columns if n != "id"]
        more = {"event": "sequence", "proposal": "ask"}.get(table)
        taken = ", ".join(f"{n} + 50" if n == more else n for n in names)
        row = rng.choice(connection.execute(f"SELECT rowid FROM {table}").fetchall())[0]
        into = ", ".join(names)
        connection.execute(
            f"INSERT INTO {table} ({into}) SELECT {taken} FROM {table} WHERE rowid = ?", (row,)
        )
    return f"row {row} of {table} repeated"


def change_definitions(path: Path, rng: random.Random) -> str:
    statement = rng.choice(
        (
            "DROP INDEX proposal_by_state",
            "DROP TABLE measurement",
            "DROP TABLE quarantine",
            "CREATE TABLE songs (title TEXT)",
            "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM event; END",
            "CREATE UNIQUE INDEX u ON proposal (study_id, state, ask)",
            "ALTER TABLE evaluation ADD COLUMN more TEXT",
            "ALTER TABLE study RENAME COLUMN created TO made",
            "ALTER TABLE baseline RENAME TO base",
            "CREATE VIEW v AS SELECT 1",
            "PRAGMA user_version = 7",
            "PRAGMA application_id = 7",
        )
    )
    with Sql(path) as connection:
        connection.execute(statement)
    return statement


class Sql:
    """A connection that checks nothing and leaves the store as one file."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("PRAGMA foreign_keys = OFF")
        self._connection.execute("PRAGMA ignore_check_constraints = ON")
        return self._connection

    def __exit__(self, *_: object) -> None:
        self._connection.close()


# (damage, how often among all, whether the store has a log beside it)
KINDS: tuple[tuple[Damage, int, bool], ...] = (
    (flip_bit, 5, False),
    (flip_bit, 1, True),
    (flip_header, 3, False),
    (flip_definition, 3, False),
    (overwrite, 4, False),
    (cut, 3, False),
    (grow, 1, False),
    (swap_pages, 3, False),
    (zero_page, 3, False),
    (damage_log, 6, True),
    (change_column, 8, False),
    (delete_row, 4, False),
    (repeat_row, 2, False),
    (change_definitions, 3, False),
)
