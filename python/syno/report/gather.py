"""Reading the content of a report from a study in a store."""

from __future__ import annotations

import datetime
import json
import statistics
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from syno._util.errors import UserError
from syno.operators.specification import read_specification
from syno.operators.summary import identity
from syno.report.model import (
    Baseline,
    LayerGroup,
    OperatorRow,
    OperatorSource,
    Report,
    RungRow,
    Status,
)
from syno.report.settings import study_settings
from syno.report.tree import tree
from syno.store import check_search
from syno.store.objective import ACCURACY, LOSS, Objective
from syno.store.tables import best_rival

if TYPE_CHECKING:
    from syno.operators.operator import Operator
    from syno.operators.specification import Specification
    from syno.store import Evaluation, StudySummary
    from syno.store.documents import SettingsDocument

BASELINE = "baseline"
TEST = "test"
_A_TIME = "2026-01-31T10:00:00.000000Z"
# What the option `latency` of a study names.
ENGINES = {
    "compiled": "compiled by Syno",
    "eager": "eager PyTorch",
    "inductor": "TorchInductor",
    "predicted": "predicted, not measured",
}
STOP_TEXTS = {
    "evaluations": "all requested evaluations are completed",
    "seconds": "the time limit is reached",
    "errors": "too many consecutive operators failed",
    "exhausted": "every operator of the space was proposed",
    "interrupted": "Ctrl-C interrupted the search",
    "callback": "a callback stopped the search",
    "no_progress": "the latest operators improved nothing",
}


def gather(summary: StudySummary) -> Report:
    """Build the report of a study.

    Raises:
        UserError: this version cannot read the text of a stored operator.
    """
    check_search(summary.study)
    settings = summary.study.settings
    specification = read_specification(summary.study.specification)
    by_ask: dict[int, list[Evaluation]] = {}
    for evaluation in (*summary.evaluations, *summary.final):
        if evaluation.kind != BASELINE:
            by_ask.setdefault(evaluation.ask, []).append(evaluation)
    quarantined = {record.key for record in summary.quarantined}
    operators = tuple(
        _operator_row(found, specification, _moment(summary.study.created), quarantined)
        for _, found in sorted(by_ask.items())
    )
    model, data = settings.get("model"), settings.get("data")
    return Report(
        title=f"{model} on {data}" if model and data else summary.study.name,
        settings=study_settings(summary),
        baseline=_baseline(summary),
        operators=operators,
        rejections=dict(summary.rejections),
        final=any(c.test_accuracy is not None for c in operators),
        stop_reason=STOP_TEXTS.get(summary.stop_reason, summary.stop_reason),
        objective=summary.objective,
        rungs=_rungs(summary),
        engine=_engine(settings),
        volumes=_volumes(summary),
    )


def _volumes(summary: StudySummary) -> tuple[float | None, ...]:
    """Return the hypervolume after each result; nothing for a single objective."""
    return summary.progress if len(summary.objectives.all) > 1 else ()


def _engine(settings: SettingsDocument) -> str:
    """Return what ran the networks that were timed, in words."""
    name = str(settings.get("latency", {}).get("latency") or "eager")
    return ENGINES.get(name, name)


def _rungs(summary: StudySummary) -> tuple[RungRow, ...]:
    rungs = summary.rungs
    return tuple(
        RungRow(
            name=rung.name,
            trained=rung.evaluated,
            failed=rung.failed,
            promoted=None if rung is rungs[-1] else rung.promoted,
            stopped=None if rung is rungs[-1] else rung.stopped,
            best=rung.best,
            baseline=rung.baseline,
            seconds=rung.seconds,
        )
        for rung in rungs
    )


def _moment(text: str) -> datetime.datetime:
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(
            "the study contains a time that cannot be read\n"
            f"  expected: as {_A_TIME}      got: {text!r}"
        ) from error


def _status(text: str) -> Status:
    if text not in set(Status):
        raise UserError(
            "the study contains an unknown status\n"
            f"  expected: one of {', '.join(Status)}      got: {text!r}"
        )
    return Status(text)


def _baseline(summary: StudySummary) -> Baseline:
    found = summary.baseline
    if found is None:
        return Baseline()
    tested = [e for e in summary.final if e.kind == BASELINE]
    # The baseline was timed with every operator; a single run may have met a busy machine.
    timed = [
        e.latency_ms / e.latency_ratio
        for e in summary.evaluations
        if e.latency_ms is not None and e.latency_ratio
    ]
    rival, time = best_rival(found.details.get("rivals", {})) or ("", None)
    return Baseline(
        accuracy=found.accuracy,
        test_accuracy=_mean(ACCURACY, tested),
        loss=LOSS.of(found.accuracy, found.details),
        test_loss=_mean(LOSS, tested),
        latency_ms=statistics.median(timed) if timed else found.latency_ms,
        latency_spread_ms=found.latency_spread_ms,
        rival=rival,
        rival_ms=None if time is None else time["median_ms"],
        rival_spread_ms=None if time is None else time["spread_ms"],
        macs=found.macs,
        params=found.params,
    )


def _operator_row(
    found: list[Evaluation],
    specification: Specification,
    start: datetime.datetime,
    quarantined: set[str],
) -> OperatorRow:
    """Summarize the evaluations of an operator: the mean over the seeds of the last rung."""
    validation = [e for e in found if e.split != TEST]
    good = [e for e in validation if e.value is not None]
    shown = (good or validation)[-1]
    same = [e for e in good if e.rung == shown.rung]
    timed = next((e for e in reversed(validation) if e.latency_ms is not None), shown)
    tested = [e for e in found if e.split == TEST]
    described = _describe(shown, specification)
    return OperatorRow(
        number=shown.ask,
        key=shown.key or "",
        id=identity(shown.text or ""),
        quarantined=shown.key in quarantined,
        status=_status(shown.status),
        reason=shown.reason,
        accuracy=_mean(ACCURACY, same),
        accuracy_spread=_deviation(ACCURACY, same),
        test_accuracy=_mean(ACCURACY, tested),
        loss=_mean(LOSS, same),
        loss_spread=_deviation(LOSS, same),
        test_loss=_mean(LOSS, tested),
        latency_ms=timed.latency_ms,
        latency_spread_ms=timed.latency_spread_ms,
        latency_ratio=timed.latency_ratio,
        macs=shown.macs,
        params=shown.params,
        primitives=dict(shown.primitives),
        text=shown.text or "",
        seconds=sum(e.seconds for e in validation),
        finished=max((_moment(e.finished) - start).total_seconds() for e in validation),
        rung_index=shown.rung_index,
        rung=shown.rung,
        scores=tuple(e.accuracy for e in good if e.accuracy is not None),
        **described,
    )


def _values(objective: Objective, evaluations: Iterable[Evaluation]) -> list[float]:
    found = (objective.of(e.accuracy, e.details) for e in evaluations)
    return [value for value in found if value is not None]


def _mean(objective: Objective, evaluations: Iterable[Evaluation]) -> float | None:
    values = _values(objective, evaluations)
    return statistics.fmean(values) if values else None


def _deviation(objective: Objective, evaluations: Iterable[Evaluation]) -> float | None:
    values = _values(objective, evaluations)
    return statistics.stdev(values) if len(values) > 1 else None


class Description(TypedDict):
    """The content about an operator in addition to its results."""

    formula: str
    dot: str
    tree: str
    layers: tuple[LayerGroup, ...]
    sources: tuple[OperatorSource, ...]
    note: str


def _describe(evaluation: Evaluation, specification: Specification) -> Description:
    """Describe an operator: its formula, drawing, layers and code, or a note without code."""
    from syno.operators.operator import Operator

    operator = Operator.from_text(evaluation.text or "", specification=specification)
    layers = _layers(operator, specification)
    sources, notes = [], []
    for layer in layers:
        try:
            if layer.fits:
                sources.append(OperatorSource(layer.label, operator.source(layer.binding)))
        except UserError as error:
            notes.append(f"no code for {layer.label}: {error}")
    return {
        "formula": operator.formula(),
        "dot": operator.dot(),
        "tree": tree(operator.to_json()),
        "layers": layers,
        "sources": tuple(_distinct(sources)),
        "note": "\n".join(notes),
    }


def _layers(operator: Operator, specification: Specification) -> tuple[LayerGroup, ...]:
    """Return the cost under each binding, and that of the original layers if it is known.

    A layer that the operator does not fit keeps its original layer.
    """
    counts = specification.multiplicities
    # All layers of a binding together.
    originals = json.loads(specification.to_json()).get("layer_macs") or [None] * len(counts)
    layers = []
    for binding, count, original in zip(specification.bindings, counts, originals, strict=True):
        each = None if original is None else round(original / count)
        try:
            layers.append(LayerGroup(binding, count, operator.macs(binding), each))
        except UserError:
            layers.append(LayerGroup(binding, count, None, each, fits=False))
    return tuple(layers)


def _distinct(sources: Iterable[OperatorSource]) -> list[OperatorSource]:
    """Merge the entries of bindings with equal code."""
    merged: dict[str, list[str]] = {}
    for source in sources:
        merged.setdefault(source.code, []).append(source.binding)
    return [OperatorSource(" and ".join(names), code) for code, names in merged.items()]
