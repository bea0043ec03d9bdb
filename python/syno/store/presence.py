"""Who is there: workers as they announce themselves, and the driver of each study.

Functions run within the transaction of the caller. The time is that of the database.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, Select, select

from syno.store import lease as leases
from syno.store import schema
from syno.store.database import Database, now
from syno.store.errors import DriverLostError
from syno.store.log import lock_study
from syno.store.outcomes import environment_id
from syno.store.records import PENDING, Environment, StudyRecord, WorkerRecord
from syno.store.rows import add, change, put

_worker = schema.worker.c
_driver = schema.driver.c
_proposal = schema.proposal.c


class Presence:
    """Workers as they announce themselves, and the driver of each study, each in a transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def announce(self, worker: str, environment: Environment, tags: Sequence[str]) -> None:
        """Note that a worker is there. The call may be repeated, if its confirmation was lost."""
        with self._database.writing() as connection:
            time = now(connection)
            if change(connection, schema.worker, _worker.name == worker, heartbeat=time):
                return
            add(
                connection,
                schema.worker,
                name=worker,
                tags=sorted(set(tags)),
                environment_id=environment_id(connection, environment),
                started=time,
                heartbeat=time,
                ended=None,
            )

    def beat(self, worker: str) -> None:
        """Note that a worker is still there."""
        with self._database.writing() as connection:
            beat(connection, worker)

    def leave(self, worker: str) -> None:
        """Note that a worker has left."""
        with self._database.writing() as connection:
            open_ = (_worker.name == worker, _worker.ended.is_(None))
            change(connection, schema.worker, *open_, ended=now(connection))

    def able(self, tags: Sequence[str]) -> list[str]:
        """List the names of the workers that are there and have all these tags."""
        with self._database.reading() as connection:
            rows = connection.execute(
                select(_worker.name, _worker.tags, _worker.heartbeat)
                .where(_worker.ended.is_(None))
                .order_by(_worker.id)
            ).all()
            time, needed = now(connection) if rows else "", set(tags)
        return [
            row.name
            for row in rows
            if needed <= set(row.tags) and leases.is_held(row.name, row.heartbeat, now=time)
        ]

    def drive(self, study: StudyRecord, holder: str) -> int | None:
        """Make a process the driver of a study, which no other process drives.

        Returns:
            The token of the driver; None if another process drives the study.
        """
        with self._database.writing() as connection:
            lock_study(connection, study.id)
            row = connection.execute(
                select(_driver.holder, _driver.token, _driver.heartbeat, _driver.ended).where(
                    _driver.study_id == study.id
                )
            ).one_or_none()
            time = now(connection)
            if row is None:
                put(
                    connection,
                    schema.driver,
                    study_id=study.id,
                    holder=holder,
                    token=1,
                    taken=time,
                    heartbeat=time,
                    ended=None,
                )
                return 1
            held = row.ended is None and leases.is_held(row.holder, row.heartbeat, now=time)
            if held and row.holder != holder:
                return None
            token = int(row.token) + 1
            values = {
                "holder": holder,
                "token": token,
                "taken": time,
                "heartbeat": time,
                "ended": None,
            }
            change(connection, schema.driver, _driver.study_id == study.id, **values)
            return token

    def renew_driver(self, study: StudyRecord, token: int) -> bool:
        """Store a heartbeat of a driver; return False if another process took over."""
        own = (_driver.study_id == study.id, _driver.token == token)
        with self._database.writing() as connection:
            return change(connection, schema.driver, *own, heartbeat=now(connection)) == 1

    def leave_driver(self, study: StudyRecord, token: int) -> None:
        """Note that a driver ended. Workers take nothing more of the study."""
        own = (_driver.study_id == study.id, _driver.token == token, _driver.ended.is_(None))
        with self._database.writing() as connection:
            change(connection, schema.driver, *own, ended=now(connection))


def beat(connection: Connection, name: str) -> None:
    """Note that a worker is still there."""
    change(connection, schema.worker, _worker.name == name, heartbeat=now(connection))


def workers(connection: Connection) -> list[WorkerRecord]:
    """List the workers, in the order in which they came."""
    environment = schema.environment.c
    busy = {
        row.lease: (row.name, row.ask)
        for row in connection.execute(
            select(_proposal.lease, _proposal.ask, schema.study.c.name)
            .join(schema.study, schema.study.c.id == _proposal.study_id)
            .where(_proposal.state == PENDING, _proposal.lease.is_not(None))
        )
    }
    rows = connection.execute(
        select(
            _worker.name,
            _worker.tags,
            _worker.started,
            _worker.heartbeat,
            _worker.ended,
            environment.device,
            environment.platform,
            environment.libraries,
            environment.commit_hash,
            environment.threads,
            environment.rules,
        )
        .join(schema.environment)
        .order_by(_worker.id)
    ).all()
    time = now(connection)
    found = []
    for row in rows:
        alive = row.ended is None and leases.is_held(row.name, row.heartbeat, now=time)
        study, ask = busy.get(row.name, (None, None)) if alive else (None, None)
        about = Environment(*tuple(row)[5:])
        times = (row.started, row.heartbeat)
        found.append(WorkerRecord(row.name, tuple(row.tags), about, *times, alive, study, ask))
    return found


def check_driver(connection: Connection, study: int, token: int) -> None:
    """Check that a token is that of the present driver of a study, which is locked.

    Raises:
        DriverLostError: if another process drives it now.
    """
    found = connection.scalar(select(_driver.token).where(_driver.study_id == study))
    if found != token:
        raise DriverLostError("another process has taken over the study meanwhile")


def driven() -> Select[tuple[int]]:
    """Select the studies whose driver has not ended: also those whose driver died, because what it
    proposed is to be evaluated, and another driver will go on."""
    return select(_driver.study_id).where(_driver.ended.is_(None))
