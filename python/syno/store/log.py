"""The log of a study: events, proposals and leases, within the transaction of the caller.

Every function first locks the row of the study (or proposal). So two processes of one study wait
for each other on PostgreSQL as on SQLite, and a sequence number is never used twice. A transaction
consists of a few statements and no work of the search.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import NamedTuple

from sqlalchemy import Connection, Text, bindparam, func, insert, select, type_coerce, update

from syno._util.errors import InternalError
from syno.store import lease as leases
from syno.store import leasing, schema
from syno.store.database import now
from syno.store.errors import AskTakenError
from syno.store.operators import Keys
from syno.store.records import (
    BASELINE,
    COMPLETED,
    OPERATOR,
    PENDING,
    VALIDATION,
    EventRecord,
    ProposalRecord,
    RungResult,
    canonical_json,
    digest,
)
from syno.store.rows import Rows, add, change, find_or_add
from syno.store.seals import event_digest

# The kind of the event of a further evaluation of a completed proposal.
EVALUATED = "evaluated"

_proposal = schema.proposal.c
_evaluation = schema.evaluation.c


class End(NamedTuple):
    """Where the log of a study ends: the number of its events and the digest of the last one."""

    events: int
    head: str


def lock_study(connection: Connection, study: int) -> End:
    """Lock the row of a study until the transaction ends (PostgreSQL; SQLite has one writer).

    Returns:
        Where its log ends.
    """
    column = schema.study.c
    query = select(column.events, column.head).where(column.id == study).with_for_update()
    found = connection.execute(query).one_or_none()
    if found is None:
        raise InternalError(f"no study has the id {study}")
    return End(*found)


def lock_study_of(connection: Connection, proposal: int) -> tuple[int, End] | None:
    """Lock the study of a proposal as `lock_study` does, with one message to the database.

    Returns:
        The id of the study, and where its log ends; None if there is no such proposal.
    """
    column = schema.study.c
    own = select(_proposal.study_id).where(_proposal.id == proposal).scalar_subquery()
    query = select(column.id, column.events, column.head).where(column.id == own)
    found = connection.execute(query.with_for_update()).one_or_none()
    return None if found is None else (found.id, End(found.events, found.head))


def study_of(connection: Connection, proposal: int) -> int:
    """Return the study of a proposal."""
    found = connection.scalar(select(_proposal.study_id).where(_proposal.id == proposal))
    if found is None:
        raise InternalError(f"no proposal has the id {proposal}")
    return int(found)


def append(
    connection: Connection,
    study: int,
    kind: str,
    data: Mapping[str, object],
    rows: Rows | None = None,
    end: End | None = None,
) -> int:
    """Append an event to the log of a study, which must be locked.

    The events form a chain: the digest of an event covers the digest of the event before, its own
    content and the seals of `rows`. The study holds the last digest.

    Args:
        connection: the transaction.
        study: the id of the study.
        kind, data: the event.
        rows: the other rows that the transaction stored.
        end: where the log ends, if the transaction knows it.

    Returns:
        The sequence number of the event.
    """
    column = schema.study.c
    if end is None:
        end = lock_study(connection, study)
    sequence = end.events + 1
    values = {"sequence": sequence, "kind": kind, "created": now(connection)}
    content = {"data": data, "stored": {} if rows is None else rows.to_json()}
    texts = {name: canonical_json(value) for name, value in content.items()}
    made = event_digest(end.head, values | texts)
    connection.execute(
        insert(schema.event), {"study_id": study, "digest": made, **values, **content}
    )
    connection.execute(
        update(schema.study).where(column.id == bindparam("own")),
        {"own": study, "events": sequence, "head": made},
    )
    return sequence


def events(connection: Connection, study: int, after: int = 0) -> list[EventRecord]:
    """Return the events of a study after the event with this number, in order."""
    column = schema.event.c
    rows = connection.execute(
        select(column.sequence, column.kind, column.data, column.created)
        .where(column.study_id == study, column.sequence > after)
        .order_by(column.sequence)
    )
    return [EventRecord(*row) for row in rows]


def proposals(
    connection: Connection, study: int, identities: Collection[int] | None = None
) -> list[ProposalRecord]:
    """Return all proposals of a study in their order, or those with the ids `identities`."""
    query = (
        select(
            _proposal.id,
            _proposal.ask,
            _proposal.kind,
            _proposal.state,
            schema.operator.c.text,
            schema.operator.c.key,
            _proposal.attempts,
            _evaluation.status,
            _evaluation.rung,
            _proposal.rung_index,
        )
        .select_from(schema.proposal)
        .outerjoin(schema.operator)
        .outerjoin(schema.evaluation, _evaluation.proposal_id == _proposal.id)
        .where(_proposal.study_id == study)
        .order_by(_proposal.ask, _evaluation.id)
    )
    if identities is not None:
        query = query.where(_proposal.id.in_(identities))
    first: dict[int, ProposalRecord] = {}
    for row in connection.execute(query):
        first.setdefault(row.id, ProposalRecord(*tuple(row)))
    return list(first.values())


def ask(
    connection: Connection,
    study: int,
    number: int,
    operator: tuple[str, str] | None,
    worker: str | None,
    *,
    counted: bool = True,
    seen: int | None = None,
    end: End | None = None,
) -> ProposalRecord:
    """Store a proposal, and lease it to a worker.

    Args:
        connection: the transaction.
        study: the id of the study.
        number: of the proposal. Numbers increase by one, from 0 or 1.
        operator: its text and key; None for the baseline.
        worker: the name of the worker; None leaves the proposal to whichever worker takes it.
        counted: whether this counts as an attempt.
        seen: the number of events of the study when its history was read, from which the operator
            follows. The event of the proposal holds it.
        end: as `lock_study` returned it, if the transaction has locked the study.

    Raises:
        AskTakenError: if `number` is not the next number.
    """
    end = end or lock_study(connection, study)
    last = connection.scalar(select(func.max(_proposal.ask)).where(_proposal.study_id == study))
    expected = (0, 1) if last is None else (last + 1,)
    if number not in expected:
        raise AskTakenError(f"ask {number} of the study is taken, {expected[-1]} is the next")
    kind = BASELINE if operator is None else OPERATOR
    rows = Rows()
    identity = add(
        connection,
        schema.proposal,
        study_id=study,
        ask=number,
        kind=kind,
        operator_id=None if operator is None else _operator_id(connection, study, operator, rows),
        state=PENDING,
        lease=None,
        heartbeat=None,
        created=now(connection),
        attempts=0,
        rung_index=0,
    )
    data = {"proposal": identity, "ask": number}
    append(connection, study, "asked", data if seen is None else data | {"seen": seen}, rows, end)
    text, key = operator or (None, None)
    made = ProposalRecord(identity, number, kind, PENDING, text, key, 0, None)
    if worker is None:
        return made
    token = leasing.take(connection, identity, worker, counted=counted)
    return dataclasses.replace(made, attempts=int(counted), token=token)


def promote(
    connection: Connection,
    identity: int,
    rung: int,
    worker: str | None,
    *,
    counted: bool = True,
) -> int | None:
    """Promote a completed proposal to the next rung: it is pending again and leased.

    Args:
        connection: the transaction.
        identity: the id of the proposal.
        rung: the next rung.
        worker: as in `ask`.
        counted: as in `ask`.

    Returns:
        The token of the lease; None without a worker.

    Raises:
        AskTakenError: if another process promoted it first.
    """
    row = connection.execute(
        select(_proposal.study_id, _proposal.ask).where(_proposal.id == identity)
    ).one()
    lock_study(connection, row.study_id)
    changed = change(
        connection,
        schema.proposal,
        _proposal.id == identity,
        _proposal.state == COMPLETED,
        _proposal.rung_index == rung - 1,
        rung_index=rung,
        state=PENDING,
        lease=None,
        heartbeat=None,
        attempts=0,
    )
    if changed != 1:
        raise AskTakenError(f"proposal {identity} was promoted to rung {rung} already")
    data = {"proposal": identity, "ask": row.ask, "rung": rung}
    append(connection, row.study_id, "promoted", data)
    if worker is None:
        return None
    return leasing.take(connection, identity, worker, counted=counted)


def rung_results(connection: Connection, study: int) -> list[RungResult]:
    """Return all evaluations of a study on the validation split, in the order of storage."""
    rows = connection.execute(
        select(
            _proposal.ask,
            _proposal.kind,
            _evaluation.rung_index,
            _evaluation.rung,
            _evaluation.status,
            _evaluation.accuracy,
            _evaluation.seconds,
        )
        .join(schema.proposal, _proposal.id == _evaluation.proposal_id)
        .where(_proposal.study_id == study, _evaluation.split == VALIDATION)
        .order_by(_evaluation.id)
    )
    return [RungResult(*row) for row in rows]


def open_proposals(connection: Connection, study: int) -> list[tuple[int, bool, str | None]]:
    """Return number, whether somebody works on it, and lease of the pending proposals."""
    query = select(_proposal.ask, _proposal.lease, _proposal.heartbeat).where(
        _proposal.study_id == study, _proposal.state == PENDING
    )
    rows = sorted(connection.execute(query), key=lambda row: row.ask)  # see `leasing.waiting`
    time = now(connection) if rows else ""
    return [(r.ask, leases.is_held(r.lease, r.heartbeat, now=time), r.lease) for r in rows]


def _operator_id(connection: Connection, study: int, operator: tuple[str, str], rows: Rows) -> int:
    (text, key), column = operator, schema.specification.c
    content = type_coerce(column.content, Text)
    found = connection.execute(
        select(column.id, content).join(schema.study).where(schema.study.c.id == study)
    ).one()
    same = {"specification_id": found.id, "digest": digest(text)}
    version = Keys().version(text, key, found.content)
    rest = {"text": text, "key": key, "key_version": version}
    return find_or_add(connection, schema.operator, same, rows, **rest)


def lease_open(
    connection: Connection, study: int, worker: str, *, counted: bool = True
) -> ProposalRecord | None:
    """Lease the first pending proposal without a valid lease.

    Args:
        connection: the transaction.
        study: the id of the study.
        worker: the name of the worker.
        counted: as in `ask`.

    Returns:
        The proposal; None if there is none.
    """
    lock_study(connection, study)
    found = lease(connection, study, worker, counted=counted, again=False)
    if found is not None:
        append(connection, study, "leased", {"proposal": found.id})
    return found


def lease(
    connection: Connection, study: int, worker: str, *, counted: bool = True, again: bool = True
) -> ProposalRecord | None:
    """As `lease_open`, for one of many workers: it locks the proposal alone, and no event says it.

    A proposal that the worker holds already is handed out to it again. None may also mean that
    others have locked what there is at the moment.
    """
    found = leasing.lease_next(connection, study, worker, counted=counted, again=again)
    if found is None:
        return None
    identity, token = found
    return dataclasses.replace(proposals(connection, study, [identity])[0], token=token)


def renew(connection: Connection, identity: int, worker: str) -> bool:
    """Store a heartbeat; return False if another worker has the lease."""
    own = (_proposal.id == identity, _proposal.lease == worker)
    return change(connection, schema.proposal, *own, heartbeat=now(connection)) == 1


def release(
    connection: Connection,
    identity: int,
    worker: str,
    *,
    counted: bool = True,
    ending: str = leasing.RELEASED,
) -> None:
    """Release the lease of a pending proposal. The evaluation does not count as an attempt.

    Args:
        connection: the transaction.
        identity: the id of the proposal.
        worker: the name of the worker.
        counted: whether the evaluation was counted as an attempt when it started.
        ending: why: see `leasing.py`.
    """
    changed = change(
        connection,
        schema.proposal,
        _proposal.id == identity,
        _proposal.lease == worker,
        _proposal.state == PENDING,
        lease=None,
        heartbeat=None,
        attempts=lambda row: row["attempts"] - int(counted),
    )
    if changed:
        leasing.end(connection, identity, ending)
