"""Storage of the results of proposals: evaluations, verifications and measurements."""

from __future__ import annotations

from sqlalchemy import Connection, select

from syno._util.errors import InternalError, UserError
from syno.store import leasing, log, schema
from syno.store.database import now
from syno.store.records import (
    COMPLETED,
    BaselineLatency,
    Environment,
    MeasurementResult,
    Outcome,
    VerificationResult,
    canonical_json,
    digest,
    plain,
)
from syno.store.rows import Rows, add, find_or_add, rewrite

# Of one result as JSON, with all its details.
MOST_BYTES = 1 << 20

_proposal = schema.proposal.c


def tell(
    connection: Connection,
    identity: int,
    outcome: Outcome,
    environment: Environment,
    worker: str | None = None,
    token: int | None = None,
) -> None:
    """Store the result of a proposal, completely or not at all.

    Args:
        connection: the transaction.
        identity: the id of the proposal.
        outcome: its result.
        environment: the machine and software of the result.
        worker: the name of the worker that evaluated it; None does not check the lease.
        token: of the lease under which it was evaluated. The same result under the same token is
            stored once.

    Raises:
        UserError: if the proposal does not exist.
        AlreadyCompletedError: if it has a result.
        LeaseLostError: if another process has the lease. It may evaluate the proposal at another
            rung.
    """
    # Every transaction locks the study first, so that no two wait for each other.
    locked = log.lock_study_of(connection, identity)
    if locked is None:
        raise UserError(f"no proposal has the id {identity}\n  expected: an id that `ask` returned")
    row = (
        connection.execute(
            select(schema.proposal).where(_proposal.id == identity).with_for_update()
        )
        .mappings()
        .one()
    )
    lease = None
    if token is not None:
        lease = leasing.check(connection, row, token)
        if lease is None:
            return
    if row["state"] == COMPLETED:
        raise leasing.completed(row)
    if worker is not None and row["lease"] != worker:
        raise leasing.lost(identity, row["ask"])
    rows = Rows()
    for each in (outcome, *outcome.beside):
        where = (identity, row["rung_index"])
        _add_result(connection, where, row["operator_id"], each, environment, rows)
    rewrite(connection, schema.proposal, row, state=COMPLETED, lease=None, heartbeat=None)
    if lease is None:
        leasing.end(connection, identity, leasing.ANSWERED)
    else:  # no other one is open
        ended = {"ended": now(connection), "ending": leasing.ANSWERED}
        rewrite(connection, schema.lease, lease, **ended)
    data = {"proposal": identity, "ask": row["ask"], "status": outcome.status}
    if row["rung_index"]:
        data["rung"] = row["rung_index"]
    log.append(connection, row["study_id"], "told", data, rows, locked[1])


def add_evaluation(
    connection: Connection, study: int, ask: int, outcome: Outcome, environment: Environment
) -> None:
    """Store a further evaluation of a completed proposal (split, rung, seed or precision).

    Raises:
        UserError: if the proposal has no result, and if the evaluation is stored already.
    """
    log.lock_study(connection, study)
    row = connection.execute(
        select(_proposal.id, _proposal.state, _proposal.operator_id, _proposal.rung_index).where(
            _proposal.study_id == study, _proposal.ask == ask
        )
    ).one_or_none()
    if row is None or row.state != COMPLETED:
        raise UserError(f"proposal {ask} of the study has no result to add an evaluation to")
    column, rows = schema.evaluation.c, Rows()
    for each in (outcome, *outcome.beside):
        same = (
            (column.proposal_id == row.id)
            & (column.recipe_digest == digest(canonical_json(each.recipe)))
            & (column.split == each.split)
            & (column.rung == each.rung)
            & (column.seed == each.seed)
        )
        if connection.scalar(select(column.id).where(same)) is not None:
            raise UserError(
                f"proposal {ask} has been evaluated on the {each.split} split with rung "
                f"'{each.rung}' and seed {each.seed} already"
            )
        _add_result(connection, (row.id, row.rung_index), row.operator_id, each, environment, rows)
    data = {"proposal": row.id, "ask": ask, "status": outcome.status}
    log.append(connection, study, log.EVALUATED, data, rows)


def _add_result(
    connection: Connection,
    where: tuple[int, int],
    operator: int | None,
    outcome: Outcome,
    environment: Environment,
    rows: Rows,
) -> None:
    """Store an evaluation with its verification and measurement; where: proposal and rung."""
    size = len(canonical_json(outcome))
    if size > MOST_BYTES:
        raise UserError(
            f"a result of {size:,} bytes is not stored\n  expected: at most {MOST_BYTES:,} bytes"
        )
    found = environment_id(connection, environment, rows)
    evaluation = _add_evaluation(connection, where, outcome, found, rows)
    verification = None
    if outcome.verification is not None and operator is not None:
        verification = _add_verification(connection, operator, outcome.verification, found, rows)
    if outcome.latency is not None:
        _add_baseline(connection, evaluation, outcome.latency, found, rows)
    if outcome.measurement is not None:
        if verification is None or outcome.verification is None:
            raise InternalError("a measurement without a verification cannot be stored")
        source = (verification, outcome.verification)
        baseline = _add_baseline(connection, evaluation, outcome.measurement.baseline, found, rows)
        _add_measurement(
            connection,
            evaluation,
            source,
            outcome.measurement,
            baseline,
            (found, environment),
            rows,
        )


def add_measured(
    connection: Connection,
    evaluation: int,
    operator: int,
    result: tuple[VerificationResult, MeasurementResult],
    environment: tuple[int, Environment],
    rows: Rows,
) -> None:
    """Store a measurement with its verification and its baseline, of one environment."""
    verified, measured = result
    source = (_add_verification(connection, operator, verified, environment[0], rows), verified)
    baseline = _add_baseline(connection, evaluation, measured.baseline, environment[0], rows)
    _add_measurement(connection, evaluation, source, measured, baseline, environment, rows)


def environment_id(
    connection: Connection, environment: Environment, rows: Rows | None = None
) -> int:
    """Return the id of an environment, which is stored once."""
    return find_or_add(
        connection,
        schema.environment,
        {"digest": environment.digest},
        rows,
        device=environment.device,
        platform=environment.platform,
        libraries=environment.libraries,
        commit_hash=environment.commit,
        threads=environment.threads,
        rules=environment.rules,
    )


def _add_evaluation(
    connection: Connection, where: tuple[int, int], outcome: Outcome, environment: int, rows: Rows
) -> int:
    proposal, rung = where
    return add(
        connection,
        schema.evaluation,
        rows,
        proposal_id=proposal,
        rung_index=rung,
        recipe_digest=digest(canonical_json(outcome.recipe)),
        recipe=outcome.recipe,
        split=outcome.split,
        rung=outcome.rung,
        seed=outcome.seed,
        status=outcome.status,
        reason=outcome.reason,
        accuracy=plain(outcome.accuracy),
        macs=outcome.macs,
        params=outcome.params,
        primitives=outcome.primitives,
        seconds=outcome.seconds,
        details=outcome.details,
        environment_id=environment,
        finished=now(connection),
    )


def _add_verification(
    connection: Connection, operator: int, result: VerificationResult, environment: int, rows: Rows
) -> int:
    return add(
        connection,
        schema.verification,
        rows,
        operator_id=operator,
        source_hash=result.source_hash,
        bindings=result.bindings,
        emitter=result.emitter,
        seed=result.seed,
        passed=result.passed,
        max_error=plain(result.max_error),
        environment_id=environment,
        created=now(connection),
    )


def _add_baseline(
    connection: Connection, evaluation: int, latency: BaselineLatency, environment: int, rows: Rows
) -> int:
    return add(
        connection,
        schema.baseline,
        rows,
        evaluation_id=evaluation,
        environment_id=environment,
        median_ms=latency.median_ms,
        spread_ms=latency.spread_ms,
        created=now(connection),
    )


def _add_measurement(
    connection: Connection,
    evaluation: int,
    source: tuple[int, VerificationResult],
    result: MeasurementResult,
    baseline: int,
    environment: tuple[int, Environment],
    rows: Rows,
) -> None:
    verification, verified = source
    add(
        connection,
        schema.measurement,
        rows,
        evaluation_id=evaluation,
        verification_id=verification,
        source_hash=verified.source_hash,
        passed=verified.passed,
        baseline_id=baseline,
        environment_id=environment[0],
        device=environment[1].device,
        median_ms=result.median_ms,
        spread_ms=result.spread_ms,
        ratio=result.ratio,
        threads=result.threads,
        repeats=result.repeats,
        batch=result.batch,
        created=now(connection),
    )
