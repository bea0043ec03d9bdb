"""Spot checks: some answers are evaluated again by another worker, and workers that lie are found.

                                agree -----------------------------> agreed
    told --> waiting --> answered
                                differ --> disputed --> third answer --> decided

The driver chooses an answer by the digest of its event, which no worker knows before it answers.
Another worker takes the check and stores what it finds. If the two differ, the driver takes the
answer back, and the proposal is evaluated by a third worker. Of the two, the one that alone differs
from the third is distrusted: it is handed out nothing more, and all its answers in the study are
taken back and evaluated again. The log keeps what each of them said.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection, RowMapping, delete, or_, select

from syno.store import lease as leases
from syno.store import leasing, log, schema
from syno.store.documents import ShortAnswer
from syno.store.engine import now
from syno.store.errors import DistrustedError
from syno.store.leasing import DISPUTED
from syno.store.objective import Objective, objective_of
from syno.store.records import (
    COMPLETED,
    OK,
    PENDING,
    REJECTED,
    Environment,
    Outcome,
    ProposalRecord,
    StudyRecord,
    short_worker,
)
from syno.store.rows import Rows, change, put
from syno.store.spot_answers import difference, in_words, short_answer, value_of

if TYPE_CHECKING:
    from syno.store.store import Store

# States of a check, beside DISPUTED.
WAITING = "waiting"
ANSWERED = "answered"
AGREED = "agreed"
DECIDED = "decided"
UNDECIDED = "undecided"  # no second or third answer could be had
TAKEN_BACK = "taken back"  # the answer is gone, because its worker was distrusted

# After so many workers that were lost over a check, it is left undecided.
MOST_LOSSES = 3

_check = schema.spot_check.c
_proposal = schema.proposal.c
_evaluation = schema.evaluation.c
_event = schema.event.c
_lease = schema.lease.c


@dataclass(frozen=True)
class SpotCheck:
    """An answer that is evaluated again.

    sequence: the number of its event.
    proposal: what was answered.
    workers: who has answered it already; they cannot take it.
    state: as in the module.
    """

    sequence: int
    proposal: ProposalRecord
    workers: tuple[str, ...]
    state: str


class SpotChecks:
    """The spot checks of one study. Each method is a transaction of the store."""

    def __init__(self, store: Store, study: StudyRecord) -> None:
        self._store, self._study = store, study.id
        self._objective = objective_of(study.settings)

    def choose(self, share: float, after: int) -> int:
        """Choose a share of the answers after an event of the log, and always the baseline's.

        Returns:
            The number of the last event that was looked at.
        """
        with self._store._writing() as connection:
            log.lock_study(connection, self._study)
            return _choose(connection, self._study, share, after)

    def take(self, worker: str) -> SpotCheck | None:
        """Lease a check of another worker's answer; None if there is none.

        Raises:
            DistrustedError: if the worker is distrusted.
        """
        with self._store._reading() as connection:  # does not hold up those that write
            if not _waiting(connection, self._study, worker):
                return None
        with self._store._writing() as connection:
            check_trusted(connection, self._study, worker)
            for sequence in _waiting(connection, self._study, worker):
                row = _locked(connection, self._study, sequence)
                if row is None or _is_busy(row, worker, now(connection)):
                    continue
                is_new = row["lease"] != worker  # not a lease whose confirmation was lost
                if is_new and row["attempts"] >= MOST_LOSSES:
                    _set(connection, row, state=UNDECIDED, lease=None)
                    continue
                time, attempts = now(connection), row["attempts"] + int(is_new)
                _set(connection, row, lease=worker, heartbeat=time, attempts=attempts)
                return _made(connection, row)
            return None

    def give_back(self, check: SpotCheck, worker: str) -> None:
        """Give a check back without an answer. It does not count as lost."""
        with self._store._writing() as connection:
            row = _locked(connection, self._study, check.sequence)
            if row is not None and row["lease"] == worker:
                _set(connection, row, lease=None, attempts=row["attempts"] - 1)

    def answer(
        self,
        check: SpotCheck,
        worker: str,
        outcome: Outcome,
        environment: Environment,
        *,
        is_conclusive: bool = True,
    ) -> bool:
        """Store what the second worker found; return whether the check was still its own.

        Args:
            check, worker: as `take` returned it.
            outcome, environment: the second answer.
            is_conclusive: False for a failure that may have an external cause.
        """
        with self._store._writing() as connection:
            log.lock_study(connection, self._study)
            row = _locked(connection, self._study, check.sequence)
            if row is None or row["lease"] != worker:
                return False
            second = short_answer(outcome, environment, self._objective)
            state = ANSWERED if is_conclusive else UNDECIDED
            _set(connection, row, state=state, lease=None, checker=worker, second=second)
            data = {"worker": worker, "answer": second}
            log.append(connection, self._study, "checked", _named(check.proposal) | data)
            return True

    def decide(self, tolerance: float) -> list[str]:
        """Compare what has been answered, as the driver does.

        Args:
            tolerance: as in `spot_answers.difference`.

        Returns:
            What the user should know.
        """
        notes: list[str] = []
        with self._store._writing() as connection:
            log.lock_study(connection, self._study)
            for row in _rows(connection, self._study, ANSWERED):
                notes += self._compare(connection, row, tolerance)
            disputed = _rows(connection, self._study, DISPUTED)
            for sequence in [row["sequence"] for row in disputed]:
                dispute = _locked(connection, self._study, sequence)
                if dispute is not None and dispute["state"] == DISPUTED:  # not settled by the last
                    notes += self._judge(connection, dispute, tolerance)
        return notes

    def leave(self, check: SpotCheck) -> None:
        """Leave a check undecided. Any worker may evaluate its proposal then."""
        with self._store._writing() as connection:
            row = _locked(connection, self._study, check.sequence)
            if row is not None:
                _set(connection, row, state=UNDECIDED)

    def pending(self) -> list[SpotCheck]:
        """List the checks that are not decided, in the order of their answers."""
        with self._store._reading() as connection:
            rows = _rows(connection, self._study, WAITING, ANSWERED, DISPUTED)
            return [_made(connection, row) for row in rows]

    def answers(self, check: SpotCheck) -> list[str]:
        """Word the two answers of a disputed check."""
        with self._store._reading() as connection:
            (row,) = [
                r
                for r in _rows(connection, self._study, DISPUTED)
                if r["sequence"] == check.sequence
            ]
            pairs = ((row["worker"], row["first"]), (row["checker"], row["second"]))
            return [f"worker {short_worker(w)}: {in_words(a, self._objective)}" for w, a in pairs]

    def _compare(self, connection: Connection, row: RowMapping, tolerance: float) -> list[str]:
        first = _stored_answer(connection, row["proposal_id"], self._objective)
        if first is None or _answerer(connection, row["proposal_id"]) != row["worker"]:
            _set(connection, row, state=TAKEN_BACK)
            return []
        found = difference(first, row["second"], self._objective, tolerance)
        if not found:
            _set(connection, row, state=AGREED)
            return []
        _set(connection, row, state=DISPUTED, first=first)
        record = log.proposals(connection, self._study, [row["proposal_id"]])[0]
        rows = Rows()
        _take_back(connection, self._study, [record.id], rows)
        workers = f"workers {short_worker(row['worker'])} and {short_worker(row['checker'])}"
        reason = f"{workers} found {found}"
        both = {"worker": row["worker"], "checker": row["checker"], "answer": first}
        log.append(
            connection, self._study, "disputed", _named(record) | both | {"reason": reason}, rows
        )
        return [f"trial {record.ask}: {reason}; a third worker evaluates it"]

    def _judge(self, connection: Connection, row: RowMapping, tolerance: float) -> list[str]:
        third = _stored_answer(connection, row["proposal_id"], self._objective)
        if third is None:
            return []
        _set(connection, row, state=DECIDED)
        differ = [
            (row[who], difference(row[answer], third, self._objective, tolerance))
            for who, answer in (("worker", "first"), ("checker", "second"))
        ]
        wrong = [(worker, found) for worker, found in differ if found]
        if len(wrong) != 1 or third["status"] not in (OK, REJECTED):
            return []
        (worker, found), ask = wrong[0], _ask(connection, row["proposal_id"])
        reason = f"in trial {ask}, it and two other workers found {found}"
        count = _distrust(connection, self._study, worker, reason)
        return [
            f"worker {short_worker(worker)} is distrusted: {reason}\n"
            f"  it takes nothing more of this study, and {count} other trials that it answered are "
            "evaluated again"
        ]


def check_trusted(connection: Connection, study: int, worker: str) -> None:
    """Raise a DistrustedError for a worker that is handed out nothing more."""
    column = schema.distrust.c
    own = (column.study_id == study) & (column.worker == worker)
    reason = connection.scalar(select(column.reason).where(own))
    if reason is not None:
        raise DistrustedError(
            f"this worker ({short_worker(worker)}) is distrusted: {reason}\n"
            "  what to do: look for what is wrong with this machine or its installation "
            "(`syno doctor`, `syno verify --random 100`) before you start the worker again"
        )


def is_waiting(connection: Connection, study: int, worker: str) -> bool:
    """Return whether a check waits that this worker may take."""
    return bool(_waiting(connection, study, worker))


def renew(connection: Connection, proposal: int, worker: str) -> bool:
    """Store a heartbeat of a check; return False if the worker has none of this proposal."""
    own = (_check.proposal_id == proposal, _check.lease == worker, _check.state == WAITING)
    return change(connection, schema.spot_check, *own, heartbeat=now(connection)) > 0


def _choose(connection: Connection, study: int, share: float, after: int) -> int:
    told = connection.execute(
        select(_event.sequence, _event.digest, _event.data)
        .where(_event.study_id == study, _event.kind == "told", _event.sequence > after)
        .order_by(_event.sequence)
    ).all()
    for sequence, digest, data in told:
        if data["status"] not in (OK, REJECTED):  # others may depend on the machine
            continue
        is_drawn = int(digest[:12], 16) < share * 16**12
        if not is_drawn and data["ask"] > 0:
            continue
        same = (_check.study_id == study) & (_check.sequence == sequence)
        worker = _answerer(connection, data["proposal"])
        if worker is None or connection.scalar(select(_check.sequence).where(same)) is not None:
            continue
        put(
            connection,
            schema.spot_check,
            study_id=study,
            sequence=sequence,
            proposal_id=data["proposal"],
            worker=worker,
            created=now(connection),
            state=WAITING,
            attempts=0,
            lease=None,
            heartbeat=None,
            checker=None,
            first=None,
            second=None,
        )
    events = select(schema.study.c.events).where(schema.study.c.id == study)
    return int(connection.scalar(events) or 0)


def _answerer(connection: Connection, proposal: int) -> str | None:
    """The worker whose answer to a proposal counts; None if a driver gave it, or it is gone."""
    state = connection.scalar(select(_proposal.state).where(_proposal.id == proposal))
    if state != COMPLETED:
        return None
    answered = (_lease.proposal_id == proposal) & (_lease.ending == leasing.ANSWERED)
    return connection.scalar(
        select(_lease.worker).where(answered).order_by(_lease.id.desc()).limit(1)
    )


def _waiting(connection: Connection, study: int, worker: str) -> list[int]:
    rows = connection.execute(
        select(_check.sequence, _check.lease, _check.heartbeat)
        .where(_check.study_id == study, _check.state == WAITING, _check.worker != worker)
        .order_by(_check.sequence)
    ).mappings()
    found = rows.all()
    time = now(connection) if found else ""
    return [row["sequence"] for row in found if not _is_busy(row, worker, time)]


def _is_busy(row: RowMapping, worker: str, time: str) -> bool:
    """Whether another worker evaluates it; one's own lease may be of a lost confirmation."""
    return row["lease"] != worker and leases.is_held(row["lease"], row["heartbeat"], now=time)


def _rows(connection: Connection, study: int, *states: str) -> list[RowMapping]:
    own = (_check.study_id == study) & _check.state.in_(states)
    query = select(schema.spot_check).where(own).order_by(_check.sequence)
    return list(connection.execute(query).mappings())


def _locked(connection: Connection, study: int, sequence: int) -> RowMapping | None:
    """A check in its state WAITING or DISPUTED, locked; None if another process locks it."""
    own = (_check.study_id == study) & (_check.sequence == sequence)
    query = select(schema.spot_check).where(own, _check.state.in_((WAITING, DISPUTED)))
    return connection.execute(query.with_for_update(skip_locked=True)).mappings().one_or_none()


def _set(connection: Connection, row: RowMapping, **values: object) -> None:
    own = (_check.study_id == row["study_id"], _check.sequence == row["sequence"])
    change(connection, schema.spot_check, *own, **values)


def _made(connection: Connection, row: RowMapping) -> SpotCheck:
    record = log.proposals(connection, row["study_id"], [row["proposal_id"]])[0]
    workers = tuple(w for w in (row["worker"], row["checker"]) if w is not None)
    return SpotCheck(row["sequence"], record, workers, row["state"])


def _named(record: ProposalRecord) -> dict[str, object]:
    return {"proposal": record.id, "ask": record.ask}


def _ask(connection: Connection, proposal: int) -> int:
    return int(connection.scalar(select(_proposal.ask).where(_proposal.id == proposal)) or 0)


def _stored_answer(
    connection: Connection, proposal: int, objective: Objective
) -> ShortAnswer | None:
    """The answer to a proposal as it is stored; None if it has none."""
    measurement, verification = schema.measurement.c, schema.verification.c
    row = (
        connection.execute(
            select(
                schema.evaluation,
                measurement.ratio,
                measurement.device,
                measurement.threads,
                verification.source_hash,
                verification.emitter,
                verification.bindings,
            )
            .select_from(schema.evaluation)
            .join(schema.proposal, _proposal.id == _evaluation.proposal_id)
            .outerjoin(
                schema.measurement,
                (measurement.evaluation_id == _evaluation.id)
                & (measurement.environment_id == _evaluation.environment_id),
            )
            .outerjoin(schema.verification, verification.id == measurement.verification_id)
            .where(_proposal.id == proposal, _proposal.state == COMPLETED)
            .order_by(_evaluation.id)
            .limit(1)
        )
        .mappings()
        .one_or_none()
    )
    if row is None:
        return None
    found: dict[str, object] = {
        "value": value_of(objective, row["accuracy"], row["details"], row["seed"]),
        "latency_ratio": row["ratio"],
    }
    names = ("status", "reason", "macs", "params", "primitives")
    more = ("source_hash", "emitter", "bindings", "device", "threads")
    found |= {name: row[name] for name in (*names, *more)}
    given = {name: value for name, value in found.items() if value is not None}
    return cast(ShortAnswer, given)


def _distrust(connection: Connection, study: int, worker: str, reason: str) -> int:
    """Take back all that a worker answered in a study; return the number of its answers."""
    time = now(connection)
    put(
        connection,
        schema.distrust,
        study_id=study,
        worker=worker,
        reason=reason,
        created=time,
    )
    answered = connection.execute(
        select(_proposal.id, _proposal.ask, _lease.worker)
        .join(schema.lease, _lease.proposal_id == _proposal.id)
        .where(_proposal.study_id == study, _proposal.state == COMPLETED)
        .where(_lease.ending == leasing.ANSWERED)
        .order_by(_lease.id)
    )
    latest = {row.id: (row.ask, row.worker) for row in answered}
    own = {identity: ask for identity, (ask, last) in latest.items() if last == worker}
    rows = Rows()
    _take_back(connection, study, own, rows)
    asks = sorted(own.values())
    # What it evaluates at the moment is not waited for.
    held = (_proposal.study_id == study, _proposal.state == PENDING, _proposal.lease == worker)
    for identity in connection.scalars(select(_proposal.id).where(*held)).all():
        leasing.end(connection, identity, leasing.DISTRUSTED)
        change(connection, schema.proposal, _proposal.id == identity, lease=None, heartbeat=None)
    in_study = _check.study_id == study
    open_ = _check.state.in_((WAITING, ANSWERED))
    change(
        connection, schema.spot_check, in_study, open_, _check.worker == worker, state=TAKEN_BACK
    )
    change(connection, schema.spot_check, in_study, _check.lease == worker, lease=None)
    again = {"state": WAITING, "checker": None, "second": None}
    its = (_check.checker == worker, _check.state == ANSWERED)
    change(connection, schema.spot_check, in_study, *its, **again)
    # Its other disputes need no third worker.
    party = or_(_check.worker == worker, _check.checker == worker)
    change(connection, schema.spot_check, in_study, _check.state == DISPUTED, party, state=DECIDED)
    data = {"worker": worker, "reason": reason, "asks": asks}
    log.append(connection, study, "distrusted", data, rows)
    return len(own)


def _take_back(connection: Connection, study: int, proposals: Collection[int], rows: Rows) -> None:
    """Delete the answers to proposals, which are evaluated again."""
    measurement, baseline = schema.measurement.c, schema.baseline.c
    verified = _verifications(connection, study, proposals)
    evaluations = connection.scalars(
        select(_evaluation.id).where(_evaluation.proposal_id.in_(proposals))
    ).all()
    measured = connection.execute(
        select(measurement.id, measurement.verification_id).where(
            measurement.evaluation_id.in_(evaluations)
        )
    ).all()
    gone = {  # a row goes before those that it refers to
        schema.measurement: [row.id for row in measured],
        schema.verification: sorted(verified | {row.verification_id for row in measured}),
        schema.baseline: connection.scalars(
            select(baseline.id).where(baseline.evaluation_id.in_(evaluations))
        ).all(),
        schema.evaluation: evaluations,
    }
    for table, ids in gone.items():
        connection.execute(delete(table).where(table.c.id.in_(ids)))
        if table is schema.evaluation:
            rows.removed += ids
        else:
            rows.taken_back.setdefault(table.name, []).extend(ids)
    for proposal in proposals:
        again = {"state": PENDING, "lease": None, "heartbeat": None, "attempts": 0}
        change(connection, schema.proposal, _proposal.id == proposal, **again)
        rows.reopened.append(proposal)


def _verifications(connection: Connection, study: int, proposals: Collection[int]) -> set[int]:
    """The verifications of answers, by the log: of what was not measured, no other row names one.

    An earlier answer to the same proposal may be gone already, and another row have its id.
    """
    told = connection.execute(
        select(_event.data, _event.stored).where(
            _event.study_id == study, _event.kind.in_(("told", log.EVALUATED))
        )
    )
    named = {
        (int(row), seal)
        for data, stored in told
        if data["proposal"] in proposals
        for row, seal in stored.get("verification", {}).items()
    }
    column = schema.verification.c
    ids = [row for row, _ in named]
    found = connection.execute(select(column.id, column.seal).where(column.id.in_(ids)))
    return {row.id for row in found if tuple(row) in named}
