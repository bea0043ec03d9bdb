"""A study as one value: what the report and the command line show, and the JSON export.

It holds data only: operators are texts and keys; formulas, drawings and code are made from the
text by whoever shows them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from sqlalchemy import Connection, select

from syno.store import log, quarantine, schema
from syno.store.documents import EventData, SettingsDocument
from syno.store.evaluation import Evaluation
from syno.store.objective import Objective, objective_of
from syno.store.raw import NamedRow
from syno.store.records import (
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
    """Everything a study has in the store.

    baseline, evaluations: on the hold-out split, which operators are chosen by; with a ladder, the
    baseline is that of the rung whose operators are compared; baselines: all of the original
    network, where several seeds trained it, or at several rungs; final: of finalists and the
    baseline on the test split, which is read for the report alone; quantized: of trained networks
    in INT8, operators' and the original's, which are in none of the others;
    rejections: operators the enumeration refused, by reason; `open_asks`: asked, not answered;
    quarantined: operators that crashed, hung or ran out of memory twice; stop_reason: why the last
    run ended, empty while it runs or after it was killed.
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
        """The settings of the study with the limits that later runs gave it."""
        return current_settings(self.study, self.events)

    @property
    def objective(self) -> Objective:
        """What its operators are judged by."""
        return objective_of(self.study.settings)

    def quality(self, evaluation: Evaluation | None) -> float | None:
        """The objective's value of one of its evaluations."""
        if evaluation is None:
            return None
        return self.objective.of(evaluation.accuracy, evaluation.details)

    @property
    def trained(self) -> tuple[Evaluation, ...]:
        """Evaluations of operators that gave an accuracy, or a loss, in the order of asking."""
        return tuple(e for e in self.evaluations if e.status == OK and self.quality(e) is not None)

    @property
    def compared(self) -> tuple[Evaluation, ...]:
        """Those of `trained` whose accuracies compare: at the highest rung that any reached."""
        highest = _highest(self.trained)
        return tuple(e for e in self.trained if e.rung_index == highest)

    @property
    def rungs(self) -> tuple[RungSummary, ...]:
        """The rungs of the study's ladder, the lowest first; none without a ladder."""
        every = (*self.baselines, *self.evaluations)
        return summarize_rungs(self.settings.get("ladder"), every, self.events)

    def to_json(self) -> dict[str, object]:
        """The same as plain lists and dicts, ready for `json.dump`."""
        return {"format": "syno study 1", **plain(self)}


def current_settings(study: StudyRecord, events: Iterable[EventRecord]) -> SettingsDocument:
    """The settings a study was made with, changed by what each `resumed` event gave."""
    settings: dict[str, object] = {**study.settings}
    for event in events:
        if event.kind == "resumed":
            settings |= {name: value for name, value in event.data.items() if value is not None}
    return cast(SettingsDocument, settings)


def summarize(connection: Connection, study: StudyRecord) -> StudySummary:
    """Reads the whole study in the caller's transaction."""
    every = _evaluations(connection, study.id)
    found = [e for e in every if _is_compared(e)]
    events = log.events(connection, study.id)
    proposals = log.proposals(connection, study.id)
    of_operators = tuple(e for e in found if e.kind != BASELINE)
    baselines = tuple(e for e in found if e.kind == BASELINE)
    highest = _highest(e for e in of_operators if e.status == OK and e.accuracy is not None)
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
        quarantined=tuple(quarantine.listed(connection, study.id)),
        quantized=tuple(e for e in every if e.split != TEST and e.precision != FLOAT32),
    )


def evaluations(connection: Connection, study: int) -> list[Evaluation]:
    """Those of the validation split in float32: what a search goes by."""
    return [e for e in _evaluations(connection, study) if _is_compared(e)]


def _is_compared(evaluation: Evaluation) -> bool:
    return evaluation.split != TEST and evaluation.precision == FLOAT32


def _evaluations(connection: Connection, study: int) -> list[Evaluation]:
    return [_evaluation(row) for row in _evaluation_rows(connection, study)]


def _highest(evaluations: Iterable[Evaluation]) -> int:
    return max((e.rung_index for e in evaluations), default=0)


def _last(events: list[EventRecord], kind: str) -> EventData:
    return next((e.data for e in reversed(events) if e.kind == kind), EventData())


def _stop_reason(events: list[EventRecord]) -> str:
    marks = [e for e in events if e.kind in ("started", "resumed", "stopped")]
    return str(marks[-1].data.get("reason", "")) if marks and marks[-1].kind == "stopped" else ""


def _evaluation_rows(connection: Connection, study: int) -> list[NamedRow]:
    proposal, evaluation = schema.proposal.c, schema.evaluation.c
    measurement, baseline = schema.measurement.c, schema.baseline.c
    environment = schema.environment.c
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
            environment.device,
            environment.platform,
            environment.libraries,
            environment.commit_hash,
            environment.threads,
            environment.rules,
        )
        .select_from(schema.proposal)
        .join(schema.evaluation, evaluation.proposal_id == proposal.id)
        .join(schema.environment, environment.id == evaluation.environment_id)
        .outerjoin(schema.operator, schema.operator.c.id == proposal.operator_id)
        .outerjoin(schema.measurement, measurement.evaluation_id == evaluation.id)
        .outerjoin(schema.baseline, baseline.evaluation_id == evaluation.id)
        .where(proposal.study_id == study)
        .order_by(proposal.ask, evaluation.id)
    )
    return list(connection.execute(query))


def _evaluation(row: NamedRow) -> Evaluation:
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
        environment=Environment(
            device=row.device,
            platform=row.platform,
            libraries=row.libraries,
            commit=row.commit_hash,
            threads=row.threads,
            rules=row.rules,
        ),
        details=row.details,
        rung_index=row.rung_index,
    )
