"""Measurements of other machines beside those of an evaluation.

An evaluation has at most one measurement of its own, of the environment in which it was trained;
others come from bundles, with the environment of their machine. They guide no search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from syno._util.errors import UserError
from syno.store import log, schema
from syno.store.bundles import Bundle, BundleRow
from syno.store.database import Database
from syno.store.outcomes import add_measured, environment_id
from syno.store.records import OK, TEST, StudyRecord, canonical_json
from syno.store.rows import Rows

# The kind of the event of an imported bundle.
IMPORTED = "imported"

_proposal = schema.proposal.c
_evaluation = schema.evaluation.c
_verification = schema.verification.c


@dataclass(frozen=True)
class DeviceMeasurement:
    """The latency of an operator's network on another machine.

    ask, key: of the operator; device: the name of the machine; ratio: to the original network in
    the same run there.
    """

    ask: int
    key: str
    device: str
    median_ms: float
    spread_ms: float
    ratio: float
    baseline_ms: float
    threads: int
    batch: int
    accuracy: float | None


@dataclass(frozen=True)
class Imported:
    """What became of a bundle; known: whether it was there before; missing: keys of operators that
    the study has not evaluated."""

    device: str
    stored: int
    known: bool
    missing: tuple[str, ...]


class Measurements:
    """The measurements of other machines in each study, each call in a transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, study: StudyRecord, bundle: Bundle) -> Imported:
        """Store the rows of a bundle about operators of a study, all together or not at all.

        Raises:
            UserError: no operator of the bundle was evaluated, or its code is other code than that
                which the study verified.
        """
        with self._database.writing() as connection:
            log.lock_study(connection, study.id)
            device = bundle.environment.device
            name = bundle.digest
            if any(
                event.kind == IMPORTED and event.data.get("digest") == name
                for event in log.events(connection, study.id)
            ):
                return Imported(device, 0, True, ())
            rows, missing, stored = Rows(), [], 0
            for row in bundle.rows:
                found = _evaluated(connection, study.id, row)
                if found is None:
                    missing.append(row.key)
                    continue
                operator, evaluation, own = found
                _check_code(connection, operator, row)
                there = environment_id(connection, bundle.environment, rows)
                if there == own:
                    raise UserError(
                        f"the bundle was measured where the study was: {device}\n"
                        "  what to do: name the other machine with `syno measure "
                        "--device-name NAME`"
                    )
                add_measured(
                    connection,
                    evaluation,
                    operator,
                    (row.verification, row.measurement),
                    (there, bundle.environment),
                    rows,
                )
                stored += 1
            if not stored:
                raise UserError(
                    "the study has evaluated no operator of the bundle\n"
                    f"  got: {', '.join(key[:8] for key in missing[:5])}\n"
                    "  what to do: name their study with --study, and measure its network, with "
                    "the same --model and --size"
                )
            log.append(connection, study.id, IMPORTED, {"digest": name, "operators": stored}, rows)
            return Imported(device, stored, False, tuple(missing))

    def of(self, study: StudyRecord) -> list[DeviceMeasurement]:
        """List them, in the order of the proposals."""
        measured, baseline = schema.measurement.c, schema.baseline.c
        query = (
            select(
                _proposal.ask,
                schema.operator.c.key,
                measured.device,
                measured.median_ms,
                measured.spread_ms,
                measured.ratio,
                baseline.median_ms.label("baseline_ms"),
                measured.threads,
                measured.batch,
                _evaluation.accuracy,
            )
            .select_from(schema.measurement)
            .join(schema.baseline, baseline.id == measured.baseline_id)
            .join(schema.evaluation, _evaluation.id == measured.evaluation_id)
            .join(schema.proposal, _proposal.id == _evaluation.proposal_id)
            .join(schema.operator, schema.operator.c.id == _proposal.operator_id)
            .where(
                _proposal.study_id == study.id,
                measured.environment_id != _evaluation.environment_id,
            )
            .order_by(_proposal.ask, measured.id)
        )
        with self._database.reading() as connection:
            return [DeviceMeasurement(**row._mapping) for row in connection.execute(query)]


def _evaluated(connection: Connection, study: int, row: BundleRow) -> tuple[int, int, int] | None:
    """The operator of a row, its evaluation at the highest rung, and the environment of that."""
    found = connection.execute(
        select(schema.operator.c.id, _evaluation.id, _evaluation.environment_id)
        .select_from(schema.proposal)
        .join(schema.operator, schema.operator.c.id == _proposal.operator_id)
        .join(schema.evaluation, _evaluation.proposal_id == _proposal.id)
        .where(
            _proposal.study_id == study,
            schema.operator.c.key == row.key,
            schema.operator.c.text == row.text,
            _evaluation.status == OK,
            _evaluation.split != TEST,
        )
        .order_by(_evaluation.rung_index.desc(), _evaluation.id)
    ).first()
    return None if found is None else (found[0], found[1], found[2])


def _check_code(connection: Connection, operator: int, row: BundleRow) -> None:
    """UserError unless this store has verified the same code in the same layers."""
    known = connection.execute(
        select(_verification.source_hash, _verification.bindings).where(
            _verification.operator_id == operator, _verification.passed
        )
    ).all()
    own = row.verification
    same = [each for each in known if each.source_hash == own.source_hash]
    # Code may be that for any size, and yet be measured in layers of other sizes.
    if any(_layers(each.bindings) == _layers(own.bindings) for each in same):
        return
    if same:
        raise UserError(
            f"the bundle is about the operator {row.key[:8]} in other layers than the study\n"
            f"  expected: {same[0].bindings}      got: {own.bindings}\n"
            "  what to do: measure the network of the study, with the same --model and --size"
        )
    raise UserError(
        f"the bundle is about other code of the operator {row.key[:8]} than the study verified\n"
        f"  expected: {', '.join(sorted({each.source_hash[:12] for each in known})) or 'none'}"
        f"      got: {own.source_hash[:12]}\n"
        "  what to do: measure the network of the study, with the same --model and --size, and the "
        "same version of Syno"
    )


def _layers(bindings: Sequence[Mapping[str, int]]) -> set[str]:
    """The sizes of layers, whatever their order."""
    return {canonical_json(binding) for binding in bindings}
