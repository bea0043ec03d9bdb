"""What the transactions of a store send to its database, and how long they lock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from sqlalchemy import Connection, event

from syno.store.database import is_server
from syno.store.store import Store

# What a transaction on a server sends beside its statements: whether the connection is alive, the
# beginning, and the end.
_BEFORE, _END = 2, 1


class Probe:
    """Counts since `reset`.

    locked: seconds in which a transaction held the lock of a study, or on SQLite that of the
        database.
    messages: what was sent to the database and answered; locked_messages: under such a lock.
    """

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer
        self._began: float | None = None  # when the lock was taken
        self._sent = 0  # before that
        self.reset()

    def reset(self) -> None:
        """Begin to count again."""
        self.locked, self.messages, self.locked_messages = 0.0, 0, 0

    def begins(self, connection: Connection) -> None:
        """Note the beginning of a transaction."""
        if is_server(connection):
            self.messages += _BEFORE

    def sends(self, statement: str) -> None:
        """Note a statement, before it is sent."""
        is_study = "FOR UPDATE" in statement and "FROM study" in statement
        if self._began is None and (is_study or statement == "BEGIN IMMEDIATE"):
            self._began, self._sent = self._timer(), self.messages
        self.messages += 1

    def ends(self) -> None:
        """Note the end of a transaction."""
        self.messages += _END
        if self._began is not None:
            self.locked += self._timer() - self._began
            self.locked_messages += self.messages - self._sent
            self._began = None


@contextlib.contextmanager
def probed(store: Store, timer: Callable[[], float]) -> Iterator[Probe]:
    """Probe the transactions of a store, which one thread uses, while the block runs."""
    probe = Probe(timer)

    def sends(connection: object, cursor: object, statement: str, *rest: object) -> None:
        probe.sends(statement)

    def begins(connection: Connection) -> None:
        probe.begins(connection)

    def ends(*given: object) -> None:
        probe.ends()

    # A connection goes back after the transaction is durable.
    listeners = (("before_cursor_execute", sends), ("begin", begins), ("checkin", ends))
    engine = store.database.engine
    for name, call in listeners:
        event.listen(engine, name, call)
    try:
        yield probe
    finally:
        for name, call in listeners:
            event.remove(engine, name, call)
