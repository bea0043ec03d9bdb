"""Operators whose failure may have come from outside them, within the caller's transaction.

An operator is in quarantine when its failures in a study reach `MOST_FAILURES`. Letting it out
forgets the failures and opens its proposal again; the log keeps what happened.
"""

from __future__ import annotations

from sqlalchemy import Connection, delete, select

from syno._errors import InternalError, UserError
from syno.store import log, schema
from syno.store.records import (
    ASKED,
    ERROR,
    MOST_FAILURES,
    TIMEOUT,
    TOLD,
    QuarantineRecord,
    utc_now,
)
from syno.store.rows import Rows, change, put

_quarantine = schema.quarantine.c
_proposal = schema.proposal.c
_evaluation = schema.evaluation.c


def add(connection: Connection, proposal: int, kind: str, reason: str) -> int:
    """Counts a failure of the operator of `proposal`, writes it into the log, and gives how many
    there are now."""
    row = connection.execute(
        select(_proposal.study_id, _proposal.ask, _proposal.operator_id).where(
            _proposal.id == proposal
        )
    ).one_or_none()
    if row is None or row.operator_id is None:
        raise InternalError(f"proposal {proposal} has no operator that could fail")
    log.lock_study(connection, row.study_id)
    same = (_quarantine.study_id == row.study_id) & (_quarantine.operator_id == row.operator_id)
    failures = int(connection.scalar(select(_quarantine.failures).where(same)) or 0) + 1
    values = {"failures": failures, "kind": kind, "reason": reason, "updated": utc_now()}
    if failures == 1:
        ids = {"study_id": row.study_id, "operator_id": row.operator_id}
        put(connection, schema.quarantine, **ids, **values)
    else:
        change(connection, schema.quarantine, same, **values)
    data = {"proposal": proposal, "ask": row.ask, "failure": kind, "reason": reason}
    log.append(connection, row.study_id, "failed", data)
    return failures


def listed(connection: Connection, study: int) -> list[QuarantineRecord]:
    """The operators in quarantine, in the order of asking."""
    operator = schema.operator.c
    rows = connection.execute(
        select(
            operator.key,
            operator.text,
            _proposal.ask,
            _quarantine.failures,
            _quarantine.kind,
            _quarantine.reason,
            _quarantine.updated,
        )
        .select_from(schema.quarantine)
        .join(schema.operator)
        .join(
            schema.proposal,
            (_proposal.operator_id == _quarantine.operator_id)
            & (_proposal.study_id == _quarantine.study_id),
        )
        .where(_quarantine.study_id == study, _quarantine.failures >= MOST_FAILURES)
        .order_by(_proposal.ask)
    )
    first: dict[str, QuarantineRecord] = {}
    for row in rows:
        first.setdefault(row.key, QuarantineRecord(*row))
    return list(first.values())


def leave(connection: Connection, study: int, key: str | None) -> list[QuarantineRecord]:
    """Lets the operators out whose keys begin with `key`, all for None, and gives them.

    Their proposals are open again and are evaluated next. UserError when there is none.
    """
    log.lock_study(connection, study)
    inside = listed(connection, study)
    found = [record for record in inside if key is None or record.key.startswith(key)]
    if not found:
        there = ", ".join(record.key[:12] for record in inside) or "none"
        wanted = "" if key is None else f" whose key begins with '{key}'"
        raise UserError(
            f"no operator{wanted} is in quarantine in this study\n"
            f"  in quarantine: {there}\n"
            "  what to do: `syno status STORE --study NAME` lists them"
        )
    for record in found:
        _forget(connection, study, record)
    return found


def _forget(connection: Connection, study: int, record: QuarantineRecord) -> None:
    operators = select(schema.operator.c.id).where(schema.operator.c.key == record.key)
    connection.execute(
        delete(schema.quarantine).where(
            _quarantine.study_id == study, _quarantine.operator_id.in_(operators)
        )
    )
    proposals = connection.execute(
        select(_proposal.id, _proposal.rung_index).where(
            _proposal.study_id == study,
            _proposal.operator_id.in_(operators),
            _proposal.state == TOLD,
        )
    ).all()
    rows = Rows()
    for proposal, rung in proposals:
        # What it gave at lower rungs of a ladder stays.
        own = (_evaluation.proposal_id == proposal) & (_evaluation.rung_index == rung)
        failed = (own, _evaluation.status.in_((ERROR, TIMEOUT)), _evaluation.accuracy.is_(None))
        rows.removed += connection.scalars(select(_evaluation.id).where(*failed))
        connection.execute(delete(schema.evaluation).where(*failed))
        if connection.scalar(select(_evaluation.id).where(own).limit(1)) is None:
            again = {"state": ASKED, "lease": None, "heartbeat": None, "attempts": 0}
            change(connection, schema.proposal, _proposal.id == proposal, **again)
            rows.reopened.append(proposal)
    data = {"key": record.key, "ask": record.ask, "reason": record.reason}
    log.append(connection, study, "released", data, rows)
