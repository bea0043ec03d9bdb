"""From a URL to a database: what differs between SQLite and PostgreSQL stands here only.

SQLite runs with write-ahead logging (readers do not wait for the writer), foreign keys on, and
`synchronous=FULL`, so that an answer that was told survives a power cut too. Transactions that
write begin with BEGIN IMMEDIATE: a second writer waits at the door, instead of failing half way.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import QueuePool, StaticPool

from syno._util import checks
from syno._util.checks import from_file, short, shown
from syno._util.errors import UserError
from syno.store.errors import translated
from syno.store.records import utc_now

_WRITES = "syno_writes"
_CLOCK = "syno_clock"
_LOCK = 0x73796E6F  # "syno": any fixed number
_TIME = """to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""

# Network file systems, as Linux names them.
_NETWORK = {
    *(
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "lustre",
        "gpfs",
        "beegfs",
        "afs",
        "glusterfs",
    ),
    *("fuse.sshfs", "fuse.ceph", "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.rclone"),
}

_EXPECTED = (
    "  expected: a file such as runs.db or sqlite:///runs.db, or a server such as "
    "postgresql://user@host/database"
)


@dataclass(frozen=True)
class StoreAddress:
    """Where a store is: `path` for a SQLite file, None in memory or on a server."""

    name: str
    dialect: str
    path: Path | None

    @property
    def in_memory(self) -> bool:
        """Whether it ends with the process."""
        return self.dialect == "sqlite" and self.path is None


def parse_address(url: str) -> StoreAddress:
    """Reads a store's address; a bare path means a SQLite file. UserError when it is neither."""
    if not isinstance(url, str):
        raise UserError(f"the address of a store is a string, got {shown(url)}\n{_EXPECTED}")
    if "://" not in url:
        if not url:
            raise UserError(f"the address of the store is empty\n{_EXPECTED}")
        return StoreAddress(url, "sqlite", _possible(Path(url)))
    checks.text("the address of a store", url)
    try:
        parsed = make_url(url)
        dialect = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise UserError(f"'{short(url)}' is not the address of a store\n{_EXPECTED}") from None
    if dialect == "sqlite":
        file = parsed.database
        path = None if file in (None, "", ":memory:") else _possible(Path(str(file)))
        return StoreAddress(str(path) if path else url, dialect, path)
    if dialect == "postgresql":
        return StoreAddress(parsed.render_as_string(hide_password=True), dialect, None)
    raise UserError(f"a store cannot be kept in '{dialect}'\n{_EXPECTED}")


def _possible(path: Path) -> Path:
    """The path. UserError for one that no file can have."""
    with from_file("cannot open the store", path):
        path.exists()
    return path


def is_server(connection: Connection) -> bool:
    """Whether the store is on a server, and not a SQLite file."""
    return connection.dialect.name == "postgresql"


class TransactionClock:
    """The time of one transaction, which is that of its first look at the clock.

    So all rows of a transaction have one time, and it asks a server once. Where the order of times
    matters, a transaction looks after it has locked what others wait for.

    Args:
        given: gives the time instead of the clock of the database, for a simulation.
    """

    def __init__(self, given: Callable[[], str] | None = None) -> None:
        self._given, self._time = given, ""

    def now(self, connection: Connection) -> str:
        """The time, as `utc_now`."""
        if not self._time:
            self._time = _present(connection) if self._given is None else self._given()
        return self._time


def now(connection: Connection) -> str:
    """The present time, as `utc_now`, by the one clock that all processes of a store share: that of
    the server, or of the machine for SQLite."""
    clock: TransactionClock | None = connection.get_execution_options().get(_CLOCK)
    return _present(connection) if clock is None else clock.now(connection)


def _present(connection: Connection) -> str:
    if not is_server(connection):
        return utc_now()
    return str(connection.scalar(text(f"SELECT {_TIME}")))


def lock_database(connection: Connection) -> None:
    """Keeps others from migrating until the transaction ends; SQLite has one writer anyway."""
    if is_server(connection):
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def id_column(connection: Connection) -> str:
    """The definition of a column `id` whose values the database gives, in ascending order."""
    kind = "SERIAL" if is_server(connection) else "INTEGER"
    return f"id {kind} NOT NULL PRIMARY KEY"


class Database:
    """The database of a store: what reads or writes it does so in a transaction.

    engine: the connections to it, as SQLAlchemy has them. clock: gives the time instead of the
    clock of the database, where time is simulated.
    """

    def __init__(self, engine: Engine, address: StoreAddress, timeout: float) -> None:
        self.engine, self.address, self._timeout = engine, address, timeout
        self.clock: Callable[[], str] | None = None
        # In memory all threads share one connection and so take turns.
        self._turn = threading.Lock() if address.in_memory else contextlib.nullcontext()

    @classmethod
    def of(
        cls, url: str, address: StoreAddress, *, create: bool, read_only: bool, timeout: float
    ) -> Database:
        """The database at `address`; nothing is opened yet."""
        if address.dialect == "sqlite":
            engine = _sqlite(address, create=create, read_only=read_only, timeout=timeout)
            return cls(engine, address, timeout)
        parsed = make_url(url)
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        try:
            engine = create_engine(parsed, pool_pre_ping=True, connect_args={"connect_timeout": 10})
        except (ModuleNotFoundError, NoSuchModuleError):
            raise UserError(
                f"the store '{address.name}' needs the PostgreSQL driver psycopg\n"
                "  what to do: pip install 'syno[postgresql]'"
            ) from None
        return cls(engine, address, timeout)

    @contextlib.contextmanager
    def _transaction(self, **options: object) -> Iterator[Connection]:
        options[_CLOCK] = TransactionClock(self.clock)
        with (
            self._turn,
            translated(self.address.name, self.address.path, self._timeout),
            self.engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield connection

    def snapshot(self) -> contextlib.AbstractContextManager[Connection]:
        """For reading: all its statements see one state, also while others write."""
        if self.address.dialect == "sqlite":
            return self.reading()
        return self._transaction(isolation_level="REPEATABLE READ", **{_WRITES: False})

    def reading(self) -> contextlib.AbstractContextManager[Connection]:
        """A transaction that writes nothing."""
        return self._transaction(**{_WRITES: False})

    def writing(self) -> contextlib.AbstractContextManager[Connection]:
        """A transaction that writes; of SQLite the only one at a time."""
        return self._transaction(**{_WRITES: True})

    def close(self) -> None:
        """Closes all connections; SQLite folds its log into the file."""
        self.engine.dispose()


def _mounts() -> list[str]:
    """The mounted file systems, as Linux lists them; nothing on another system."""
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def network_file_system(path: Path) -> str:
    """The type of the network file system that holds a path; empty for a local one."""
    target, found, length = path.absolute().resolve(), "", -1
    for line in _mounts():
        before, _, after = line.partition(" - ")
        mounted = Path(re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), before.split()[4]))
        depth = len(mounted.parts)
        if depth >= length and target.is_relative_to(mounted):  # of two at one place, the later
            found, length = after.split()[0], depth
    return found if found in _NETWORK else ""


def _check_local(path: Path) -> None:
    """UserError for a file that several machines may write, whose locks SQLite does not see."""
    kind = network_file_system(path)
    if kind:
        raise UserError(
            f"the store '{path}' is on a network file system ({kind}), on which SQLite loses what "
            "several machines write\n"
            "  what to do: keep the store on a disk of this machine, or use a server: "
            "--store postgresql://user@host/database"
        )


def _sqlite(address: StoreAddress, *, create: bool, read_only: bool, timeout: float) -> Engine:
    path = address.path
    if path is not None:
        with from_file("cannot open the store", path):
            _check_path(path, create=create)
            if not read_only:
                _check_local(path)

    def connect() -> sqlite3.Connection:
        # Without an isolation level Python begins no transactions behind our back; see `_begin`.
        connected = functools.partial(
            sqlite3.connect, timeout=timeout, isolation_level=None, check_same_thread=False
        )
        if path is None:
            return connected(":memory:")
        uri = path.absolute().as_uri()
        if read_only:
            return _connect_read_only(path, uri, connected)
        return connected(f"{uri}?mode={'rwc' if create else 'rw'}", uri=True)

    pool = StaticPool if path is None else QueuePool
    engine = create_engine("sqlite://", creator=connect, poolclass=pool)

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")
        if path is not None and not read_only:
            connection.execute("PRAGMA journal_mode = WAL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _connect_read_only(
    path: Path, uri: str, connected: Callable[..., sqlite3.Connection]
) -> sqlite3.Connection:
    """Opens a store for reading, also in a folder where nothing can be written.

    Write-ahead logging wants an index file beside the store, even for reading. Where that cannot be
    made and no log is left to read, nobody can be writing, and the file alone is the store.
    """
    connection = connected(f"{uri}?mode=ro", uri=True)
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size > 0:
            raise
        connection.close()
        return connected(f"{uri}?immutable=1", uri=True)
    return connection


def _check_path(path: Path, *, create: bool) -> None:
    if path.is_dir():
        raise UserError(
            f"the store '{path}' is a folder\n  expected: a file, such as {path / 'runs.db'}"
        )
    if path.exists():
        return
    if not create:
        raise UserError(
            f"there is no store '{path}'\n"
            "  what to do: check the path; `syno search --store FILE` makes a new one"
        )
    if not path.absolute().parent.is_dir():
        raise UserError(
            f"the store '{path}' cannot be created: there is no folder '{path.absolute().parent}'\n"
            "  what to do: make the folder first, or choose another one"
        )
