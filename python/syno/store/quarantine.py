"""The quarantine of a study: operators whose failures may have an external cause.

An operator is in quarantine if it failed `MOST_FAILURES` times in the study, or if it was given up
because its process ended in each attempt. The same holds for the baseline. A release deletes the
failures and makes the proposal pending again; the log keeps both. Functions run within the
transaction of the caller.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from sqlalchemy import Connection, and_, delete, or_, select

from syno._util.errors import InternalError, UserError
from syno.operators.summary import is_named, short_id
from syno.store import log, schema
from syno.store.database import Database, now
from syno.store.raw import NamedRow
from syno.store.records import (
    BASELINE,
    COMPLETED,
    CRASH,
    ERROR,
    GIVEN_UP,
    HANG,
    MOST_FAILURES,
    OUT_OF_MEMORY,
    PENDING,
    TIMEOUT,
    ProposalRecord,
    QuarantineRecord,
    StudyRecord,
)
from syno.store.rows import Rows, change, put

_quarantine = schema.quarantine.c
_proposal = schema.proposal.c
_evaluation = schema.evaluation.c
# How the reason begins if the cause is outside of the operator.
_OUTSIDE = tuple(f"{kind}:" for kind in (CRASH, HANG, OUT_OF_MEMORY))


class Quarantine:
    """The quarantine of each study, each call in a transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, proposal: int, kind: str, reason: str) -> int:
        """Count and log a failure of the operator of a proposal.

        Returns:
            The number of its failures.
        """
        with self._database.writing() as connection:
            row = connection.execute(
                select(_proposal.study_id, _proposal.ask, _proposal.operator_id).where(
                    _proposal.id == proposal
                )
            ).one_or_none()
            if row is None or row.operator_id is None:
                raise InternalError(f"proposal {proposal} has no operator that could fail")
            log.lock_study(connection, row.study_id)
            same = (_quarantine.study_id == row.study_id) & (
                _quarantine.operator_id == row.operator_id
            )
            count = int(connection.scalar(select(_quarantine.failures).where(same)) or 0) + 1
            values = {"failures": count, "kind": kind, "reason": reason, "updated": now(connection)}
            if count == 1:
                ids = {"study_id": row.study_id, "operator_id": row.operator_id}
                put(connection, schema.quarantine, **ids, **values)
            else:
                change(connection, schema.quarantine, same, **values)
            data = {"proposal": proposal, "ask": row.ask, "failure": kind, "reason": reason}
            log.append(connection, row.study_id, "failed", data)
            return count

    def of(self, study: StudyRecord) -> list[QuarantineRecord]:
        """List the operators in quarantine, in the order of their proposals."""
        with self._database.reading() as connection:
            return quarantined(connection, study.id)

    def reason(self, study: StudyRecord, key: str) -> str | None:
        """Why the operator failed last, if it failed too often; None otherwise.

        It is fast in a study of any size, and leaves out operators that were given up: a driver
        proposes them no more.
        """
        with self._database.reading() as connection:
            found = failures(connection, study.id, [key])
        return found[0].reason if found else None

    def leave(self, study: StudyRecord, key: str | None) -> list[QuarantineRecord]:
        """Release operators from quarantine. Their proposals are evaluated next.

        Args:
            study: the study.
            key: the start of the keys; `baseline` for the baseline, and None for all.

        Returns:
            The released operators.

        Raises:
            UserError: if no such operator is in quarantine.
        """
        with self._database.writing() as connection:
            log.lock_study(connection, study.id)
            inside = quarantined(connection, study.id)
            found = [record for record in inside if _is_meant(record, key)]
            if not found:
                there = ", ".join(short_id(record.text, record.key) for record in inside) or "none"
                wanted = "" if key is None else f" whose id or key begins with '{key}'"
                raise UserError(
                    f"no operator{wanted} is in quarantine in this study\n"
                    f"  in quarantine: {there}\n"
                    "  what to do: `syno status --store STORE --study NAME` lists them"
                )
            for record in found:
                _forget(connection, study.id, record)
            return found


def quarantined(connection: Connection, study: int) -> list[QuarantineRecord]:
    """List the operators in quarantine, in the order of their proposals."""
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
    for record in _by_results(connection, study):
        first.setdefault(record.key, record)
    return sorted(first.values(), key=lambda record: record.ask)


class Failed(NamedTuple):
    """An operator that failed too often."""

    key: str
    text: str
    failures: int
    kind: str
    reason: str
    updated: str


def failures(
    connection: Connection, study: int, keys: Collection[str] | None = None
) -> list[Failed]:
    """List the operators of a study that failed too often, or those of them with these keys."""
    operator = schema.operator.c
    query = (
        select(
            operator.key,
            operator.text,
            _quarantine.failures,
            _quarantine.kind,
            _quarantine.reason,
            _quarantine.updated,
        )
        .select_from(schema.quarantine)
        .join(schema.operator)
        .where(_quarantine.study_id == study, _quarantine.failures >= MOST_FAILURES)
    )
    if keys is not None:
        query = query.where(operator.key.in_(keys))
    return [Failed(*row) for row in connection.execute(query)]


def by_results(record: ProposalRecord, rows: Iterable[NamedRow]) -> list[QuarantineRecord]:
    """List what the results of one proposal say: see `quarantined`.

    Args:
        record: the proposal.
        rows: of all its evaluations, in the order of storage.
    """
    found = []
    for row in rows:
        is_last = record.state == COMPLETED and row.rung_index == record.rung_index
        failed = row.status in (ERROR, TIMEOUT) and row.accuracy is None
        is_baseline = record.kind == BASELINE and row.reason.startswith(_OUTSIDE)
        if is_last and failed and (_is_given_up(row.reason) or is_baseline):
            found.append(_by_result(record.key, record.text, record.ask, row.reason, row.finished))
    return found


def _is_given_up(reason: str) -> bool:
    before, after = GIVEN_UP.split("{}")
    is_long = len(reason) >= len(before) + len(after)
    return is_long and reason.startswith(before) and reason.endswith(after)


def _by_result(
    key: str | None, text: str | None, ask: int, reason: str, finished: str
) -> QuarantineRecord:
    kind = next((k for k in (HANG, OUT_OF_MEMORY) if reason.startswith(f"{k}:")), CRASH)
    given_up = re.fullmatch(GIVEN_UP.format(r"(\d+)"), reason)
    count = int(given_up[1]) if given_up else MOST_FAILURES
    return QuarantineRecord(key or BASELINE, text or "", ask, count, kind, reason, finished)


def _by_results(connection: Connection, study: int) -> list[QuarantineRecord]:
    """List what the results show: operators that were given up, and a baseline that failed."""
    outside = [_evaluation.reason.like(f"{start}%") for start in _OUTSIDE]
    rows = connection.execute(
        select(
            schema.operator.c.key,
            schema.operator.c.text,
            _proposal.ask,
            _evaluation.reason,
            _evaluation.finished,
        )
        .select_from(schema.evaluation)
        .join(schema.proposal)
        .outerjoin(schema.operator)
        .where(
            _proposal.study_id == study,
            _proposal.state == COMPLETED,
            _evaluation.rung_index == _proposal.rung_index,
            _evaluation.status.in_((ERROR, TIMEOUT)),
            _evaluation.accuracy.is_(None),
            or_(
                _evaluation.reason.like(GIVEN_UP.format("%")),
                and_(_proposal.kind == BASELINE, or_(*outside)),
            ),
        )
        .order_by(_proposal.ask, _evaluation.id)
    )
    return [_by_result(*row) for row in rows]


def _is_meant(record: QuarantineRecord, key: str | None) -> bool:
    if key is None or record.key == key:
        return True
    return record.key != BASELINE and is_named(key, record.text, record.key)


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
            _proposal.kind == BASELINE
            if record.key == BASELINE
            else _proposal.operator_id.in_(operators),
            _proposal.state == COMPLETED,
        )
    ).all()
    rows = Rows()
    for proposal, rung in proposals:
        # Results at lower rungs stay.
        own = (_evaluation.proposal_id == proposal) & (_evaluation.rung_index == rung)
        failed = (own, _evaluation.status.in_((ERROR, TIMEOUT)), _evaluation.accuracy.is_(None))
        rows.removed += connection.scalars(select(_evaluation.id).where(*failed))
        connection.execute(delete(schema.evaluation).where(*failed))
        if connection.scalar(select(_evaluation.id).where(own).limit(1)) is None:
            again = {"state": PENDING, "lease": None, "heartbeat": None, "attempts": 0}
            change(connection, schema.proposal, _proposal.id == proposal, **again)
            rows.reopened.append(proposal)
    data = {"key": record.key, "ask": record.ask, "reason": record.reason}
    log.append(connection, study, "released", data, rows)
