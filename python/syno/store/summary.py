"""The summary of a study as one value, for reports, the command line and the JSON export.

It holds data only. Operators are texts and keys, from which formulas, drawings and code are made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

from sqlalchemy import Connection, select

from syno._util.collector import paused_collector
from syno._util.errors import UserError
from syno.store import log, quarantine, schema
from syno.store.documents import EventData, SettingsDocument
from syno.store.evaluation import Evaluation
from syno.store.objective import Objective, objective_of
from syno.store.objectives import Objectives, objectives_of
from syno.store.raw import NamedRow
from syno.store.records import (
    ADAPTATION,
    BASELINE,
    FLOAT32,
    OK,
    TEST,
    Environment,
    EventRecord,
    QuarantineRecord,
    StudyRecord,
    plain,
)
from syno.store.rungs import RungSummary, summarize_rungs


@dataclass(frozen=True)
class StudySummary:
    """Everything that the store has of a study.

    baseline: the evaluation of the original network on the validation split; with a ladder, at the
        rung whose operators are compared.
    evaluations: those of operators on the validation split.
    baselines: all evaluations of the original network, with several seeds or at several rungs.
    final: evaluations of the finalists and the baseline on the test split.
    quantized: evaluations of networks in INT8. They are in none of the other fields.
    rejections: how many operators the enumeration rejected, by reason.
    open_asks: the numbers of the pending proposals.
    quarantined: operators that crashed, hung or ran out of memory twice.
    stop_reason: why the last run ended; empty while it runs, and after it was killed.
    """

    study: StudyRecord
    baseline: Evaluation | None
    evaluations: tuple[Evaluation, ...]
    rejections: dict[str, int]
    events: tuple[EventRecord, ...]
    open_asks: tuple[int, ...]
    stop_reason: str
    final: tuple[Evaluation, ...] = ()
    baselines: tuple[Evaluation, ...] = ()
    quarantined: tuple[QuarantineRecord, ...] = ()
    quantized: tuple[Evaluation, ...] = ()

    @property
    def settings(self) -> SettingsDocument:
        """The settings of the study, with the limits that later runs set."""
        return current_settings(self.study, self.events)

    @property
    def objective(self) -> Objective:
        """The accuracy, loss or metric of its networks."""
        return objective_of(self.study.settings)

    @property
    def objectives(self) -> Objectives:
        """The objectives and constraints of the study."""
        return objectives_of(self.study.settings)

    @property
    def archive(self) -> tuple[Evaluation, ...]:
        """Those of `compared` that satisfy the constraints and that no other one beats.

        A result whose latency was predicted guides the search, but is not among them.
        """
        found = (e for e in self.compared if not self.objectives.is_predicted(e))
        return tuple(self.objectives.archive(found))

    @property
    def hypervolume(self) -> float | None:
        """The hypervolume of the archive; None for a single objective.

        It is None before an operator satisfies the constraints, too.
        """
        if len(self.objectives.all) == 1:
            return None
        if any(map(self.objectives.is_predicted, self.compared)):
            found = self.archive
            return self.objectives.volume(found, self.baseline) if found else None
        return next((value for value in reversed(self.progress) if value is not None), None)

    @cached_property
    def progress(self) -> tuple[float | None, ...]:
        """How good the operators are up to each result of `ended`: see `Objectives.progress`."""
        return tuple(self.objectives.progress(self.ended, self.baseline))

    @property
    def ended(self) -> tuple[Evaluation, ...]:
        """The results of operators at the rung of `compared`, in the order in which they ended.

        Failures are among them.
        """
        highest = _highest(self.trained)
        found = (e for e in self.evaluations if e.rung_index == highest and e.is_evaluated)
        return tuple(sorted(found, key=lambda e: (e.finished, e.ask)))

    def quality(self, evaluation: Evaluation | None) -> float | None:
        """Return the value of the objective in an evaluation."""
        return None if evaluation is None else evaluation.value

    @property
    def trained(self) -> tuple[Evaluation, ...]:
        """Evaluations of operators with an accuracy or a loss, in the order of the proposals."""
        return tuple(e for e in self.evaluations if e.status == OK and self.quality(e) is not None)

    @property
    def compared(self) -> tuple[Evaluation, ...]:
        """Those of `trained` with comparable accuracies: at the highest rung that any reached."""
        highest = _highest(self.trained)
        return tuple(e for e in self.trained if e.rung_index == highest)

    @property
    def rungs(self) -> tuple[RungSummary, ...]:
        """The rungs of the study, the lowest first; empty without a ladder."""
        every = (*self.baselines, *self.evaluations)
        return summarize_rungs(self.settings.get("ladder"), every, self.events)

    def to_json(self) -> dict[str, object]:
        """Return the summary as plain lists and dicts for `json.dump`."""
        return {"format": "syno study 1", **plain(self)}


def check_search(study: StudyRecord) -> None:
    """Raise a UserError for a study that is an adaptation, and no search or training."""
    if study.settings.get("method") == ADAPTATION:
        raise UserError(
            f"study '{study.name}' is an adaptation, which has no trials\n"
            f"  what to do: `syno adapt --name {study.name}` with its other options continues it, "
            "and\n              writes its report (--report) and its networks (--out)"
        )


def current_settings(study: StudyRecord, events: Iterable[EventRecord]) -> SettingsDocument:
    """Return the settings of a study, with the changes of each `resumed` event."""
    settings: dict[str, object] = {**study.settings}
    for event in events:
        if event.kind == "resumed":
            settings |= {name: value for name, value in event.data.items() if value is not None}
    return cast(SettingsDocument, settings)


def summarize(connection: Connection, study: StudyRecord) -> StudySummary:
    """Read a whole study, within the transaction of the caller."""
    with paused_collector():
        return _summarize(connection, study)


def _summarize(connection: Connection, study: StudyRecord) -> StudySummary:
    every = _evaluations(connection, study)
    found = [e for e in every if is_compared(e)]
    events = log.events(connection, study.id)
    proposals = log.proposals(connection, study.id)
    of_operators = tuple(e for e in found if e.kind != BASELINE)
    baselines = tuple(e for e in found if e.kind == BASELINE)
    highest = _highest(e for e in of_operators if e.status == OK and e.value is not None)
    return StudySummary(
        study=study,
        baseline=next((e for e in baselines if e.rung_index == highest), None),
        evaluations=of_operators,
        rejections=_last(events, "space").get("rejections", {}),
        events=tuple(events),
        open_asks=tuple(p.ask for p in proposals if p.is_open),
        stop_reason=_stop_reason(events),
        final=tuple(e for e in every if e.split == TEST),
        baselines=baselines,
        quarantined=tuple(quarantine.quarantined(connection, study.id)),
        quantized=tuple(e for e in every if e.split != TEST and e.precision != FLOAT32),
    )


def evaluations(connection: Connection, study: StudyRecord) -> list[Evaluation]:
    """Return the evaluations in float32 on the validation split, which guide a search."""
    return [e for e in _evaluations(connection, study) if is_compared(e)]


def is_compared(evaluation: Evaluation | NamedRow) -> bool:
    """Whether an evaluation, or its row, is in float32 on the validation split."""
    precision = evaluation.recipe.get("precision", FLOAT32)
    return bool(evaluation.split != TEST and precision == FLOAT32)


def _evaluations(connection: Connection, study: StudyRecord) -> list[Evaluation]:
    objective = objective_of(study.settings)
    rows = evaluation_rows(connection, study.id)
    there = environments(connection, {row.environment_id for row in rows})
    return [as_evaluation(row, objective, there[row.environment_id]) for row in rows]


def _highest(evaluations: Iterable[Evaluation]) -> int:
    return max((e.rung_index for e in evaluations), default=0)


def _last(events: list[EventRecord], kind: str) -> EventData:
    return next((e.data for e in reversed(events) if e.kind == kind), EventData())


def _stop_reason(events: list[EventRecord]) -> str:
    marks = [e for e in events if e.kind in ("started", "resumed", "stopped")]
    return str(marks[-1].data.get("reason", "")) if marks and marks[-1].kind == "stopped" else ""


def evaluation_rows(
    connection: Connection, study: int, proposals: Collection[int] | None = None
) -> list[NamedRow]:
    """Return the rows that evaluations are made of, by proposal and then in the order of storage.

    Args:
        connection: the transaction.
        study: the id of the study.
        proposals: the ids of the proposals; None for all of the study.
    """
    proposal, evaluation = schema.proposal.c, schema.evaluation.c
    measurement, baseline = schema.measurement.c, schema.baseline.c
    query = (
        select(
            proposal.ask,
            proposal.kind,
            schema.operator.c.key,
            schema.operator.c.text,
            schema.evaluation,
            measurement.median_ms,
            measurement.spread_ms,
            measurement.ratio,
            measurement.source_hash,
            baseline.median_ms.label("baseline_ms"),
            baseline.spread_ms.label("baseline_spread_ms"),
        )
        .select_from(schema.proposal)
        .join(schema.evaluation, evaluation.proposal_id == proposal.id)
        .outerjoin(schema.operator, schema.operator.c.id == proposal.operator_id)
        .outerjoin(
            schema.measurement,
            (measurement.evaluation_id == evaluation.id)
            & (measurement.environment_id == evaluation.environment_id),
        )
        .outerjoin(
            schema.baseline,
            (baseline.evaluation_id == evaluation.id)
            & (baseline.environment_id == evaluation.environment_id),
        )
        .where(proposal.study_id == study)
        .order_by(proposal.ask, evaluation.id)
    )
    if proposals is not None:
        query = query.where(proposal.id.in_(proposals))
    return list(connection.execute(query))


def environments(connection: Connection, identities: Collection[int]) -> dict[int, Environment]:
    """Return the environments with these ids: few, while many evaluations refer to each."""
    column = schema.environment.c
    rows = connection.execute(
        select(
            column.id,
            column.device,
            column.platform,
            column.libraries,
            column.commit_hash,
            column.threads,
            column.rules,
        ).where(column.id.in_(identities))
    )
    return {identity: Environment(*rest) for identity, *rest in rows}


def as_evaluation(row: NamedRow, objective: Objective, environment: Environment) -> Evaluation:
    """Return a row of `evaluation_rows` as an evaluation."""
    own = row.kind == BASELINE and row.baseline_ms is not None
    return Evaluation(
        ask=row.ask,
        kind=row.kind,
        key=row.key,
        text=row.text,
        status=row.status,
        reason=row.reason,
        accuracy=row.accuracy,
        split=row.split,
        rung=row.rung,
        recipe=row.recipe,
        seed=row.seed,
        macs=row.macs,
        params=row.params,
        primitives=row.primitives,
        latency_ms=row.baseline_ms if own else row.median_ms,
        latency_spread_ms=row.baseline_spread_ms if own else row.spread_ms,
        latency_ratio=row.details.get("latency_ratio", 1.0) if own else row.ratio,
        baseline_latency_ms=row.baseline_ms,
        source_hash=row.source_hash,
        seconds=row.seconds,
        finished=row.finished,
        environment=environment,
        details=row.details,
        rung_index=row.rung_index,
        objective=objective,
    )
