"""Handing proposals out: who works on one, under which token, and how that ended.

    proposal.lease, .heartbeat      who works on it now (`lease.py`)
    lease                           each time that it was handed out: the id is the fencing token

An answer under a token is stored if no later lease of the proposal exists, and stored once: the
same answer again, after a lost confirmation, changes nothing. All functions run within the
transaction of the caller, and take the time from the database.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, RowMapping, func, or_, select

from syno._util.errors import InternalError
from syno.store import lease as leases
from syno.store import schema
from syno.store.database import now
from syno.store.errors import AlreadyCompletedError, LeaseLostError
from syno.store.records import COMPLETED, PENDING
from syno.store.rows import add, change, rewrite

# How a lease ended.
ANSWERED = "answered"
RELEASED = "released"  # given back, such as after Ctrl-C
PREEMPTED = "preempted"  # the worker was asked to end and gave it back
LOST = "lost"  # the worker was not heard of any more

_proposal = schema.proposal.c
_lease = schema.lease.c


def take(
    connection: Connection,
    identity: int,
    worker: str,
    *,
    counted: bool = True,
    row: RowMapping | None = None,
) -> int:
    """Lease a proposal, which nobody holds, to a worker.

    Args:
        connection: the transaction, which has locked the proposal or made it.
        identity: the id of the proposal.
        worker: the name of the worker.
        counted: whether this counts as an attempt.
        row: of the proposal, if the transaction has locked and read it.

    Returns:
        The token of the lease.
    """
    time = now(connection)
    end(connection, identity, LOST)  # a lease that nobody ended
    if row is None:
        query = select(schema.proposal).where(_proposal.id == identity).with_for_update()
        row = connection.execute(query).mappings().one()
    attempts = row["attempts"] + int(counted)
    rewrite(connection, schema.proposal, row, lease=worker, heartbeat=time, attempts=attempts)
    return add(
        connection,
        schema.lease,
        proposal_id=identity,
        rung_index=row["rung_index"],
        worker=worker,
        taken=time,
        ended=None,
        ending=None,
    )


def end(connection: Connection, identity: int, ending: str, token: int | None = None) -> None:
    """Note how the open lease of a proposal ended; nothing if it has none.

    Args:
        connection: the transaction.
        identity: the id of the proposal.
        ending: how it ended.
        token: of the lease; None for whichever is open.
    """
    own = [_lease.proposal_id == identity, _lease.ended.is_(None)]
    if token is not None:
        own.append(_lease.id == token)
    change(connection, schema.lease, *own, ended=now(connection), ending=ending)


def lease_next(
    connection: Connection, study: int, worker: str, *, counted: bool = True, again: bool = False
) -> tuple[int, int] | None:
    """Lease the first pending proposal of a study that nobody works on.

    It locks one row, and passes over rows that other workers lock at the moment.

    Args:
        connection: the transaction.
        study: the id of the study.
        worker: the name of the worker.
        counted: as in `take`.
        again: whether what this worker holds itself counts as free: it evaluates one proposal at a
            time, and may not know of a lease whose confirmation was lost.

    Returns:
        The id of the proposal and the token of the lease; None if there is none.
    """
    own = worker if again else None
    for identity in waiting(connection, study, own):
        query = select(schema.proposal).where(_proposal.id == identity, _proposal.state == PENDING)
        row = connection.execute(query.with_for_update(skip_locked=True)).mappings().one_or_none()
        if row is None or not _is_free(row["lease"], row["heartbeat"], now(connection), own):
            continue
        return identity, take(connection, identity, worker, counted=counted, row=row)
    return None


def is_waiting(connection: Connection, study: int, worker: str | None = None) -> bool:
    """Whether a study has a pending proposal that nobody works on, but possibly `worker`."""
    return bool(waiting(connection, study, worker))


def waiting(connection: Connection, study: int, worker: str | None = None) -> list[int]:
    """List the ids of the pending proposals of a study that nobody works on, but possibly `worker`.

    They are in the order of their numbers.
    """
    # SQLite would read all proposals of the study in the order of an index, to save the sorting of
    # the few pending ones.
    query = (
        select(_proposal.id, _proposal.ask, _proposal.lease, _proposal.heartbeat)
        .where(_proposal.study_id == study, _proposal.state == PENDING)
        .where(or_(*_may_be_free(now(connection), worker)))
    )
    rows = sorted(connection.execute(query), key=lambda row: row.ask)
    time = now(connection) if rows else ""
    return [row.id for row in rows if _is_free(row.lease, row.heartbeat, time, worker)]


def _may_be_free(time: str, worker: str | None) -> list[ColumnElement[bool]]:
    """Conditions of which every free proposal meets one, so that of many that other machines hold
    none is read: see `lease.is_held`."""
    found = [
        _proposal.lease.is_(None),
        _proposal.heartbeat.is_(None),
        _proposal.heartbeat < leases.expired(time),
        _proposal.lease.startswith(f"{leases.machine()}:", autoescape=True),
    ]
    return found if worker is None else [*found, _proposal.lease == worker]


def _is_free(lease: str | None, heartbeat: str | None, time: str, worker: str | None) -> bool:
    own = worker is not None and lease == worker
    return own or not leases.is_held(lease, heartbeat, now=time)


def check(connection: Connection, proposal: RowMapping, token: int) -> RowMapping | None:
    """Check that an answer under a token is to be stored.

    Args:
        connection: the transaction, which has locked the proposal.
        proposal: its row.
        token: of the lease.

    Returns:
        The row of the lease, which is the only open one of the proposal; None if the answer is
        stored already.

    Raises:
        AlreadyCompletedError: if the proposal has an answer under another token.
        LeaseLostError: if the lease ended, or a later one exists.
    """
    identity = proposal["id"]
    latest = select(func.max(_lease.id)).where(_lease.proposal_id == identity).scalar_subquery()
    query = select(schema.lease, latest.label("latest")).where(_lease.id == token)
    own = connection.execute(query).mappings().one_or_none()
    if own is None or own["proposal_id"] != identity:
        raise InternalError(f"no lease of proposal {identity} has the token {token}")
    if own["ending"] == ANSWERED:
        return None
    if proposal["state"] == COMPLETED:
        raise completed(proposal)
    if own["ended"] is not None or own["latest"] != token:
        raise lost(identity, proposal["ask"])
    return own


def completed(proposal: RowMapping) -> AlreadyCompletedError:
    """Make the error for an answer to a proposal that has one."""
    return AlreadyCompletedError(
        f"proposal {proposal['id']} (ask {proposal['ask']}) has a result already"
    )


def lost(identity: int, ask: int) -> LeaseLostError:
    """Make the error for an answer under a lease that ended."""
    return LeaseLostError(
        f"proposal {identity} (ask {ask}) was taken over by another process while this one "
        "was suspended or could not reach the store\n"
        "  the result of that process counts, and this one is not counted"
    )


def losses(connection: Connection, identity: int) -> int:
    """Count the leases of a proposal since its last answer whose worker was lost."""
    answered = select(func.max(_lease.id)).where(
        _lease.proposal_id == identity, _lease.ending == ANSWERED
    )
    since = connection.scalar(answered) or 0
    found = select(func.count()).where(
        _lease.proposal_id == identity, _lease.ending == LOST, _lease.id > since
    )
    return int(connection.scalar(found) or 0)
