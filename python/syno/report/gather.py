"""From a study in the store to what the page shows: the only place that knows both."""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from syno._errors import UserError
from syno.report.asked import asked, read_specification
from syno.report.model import Baseline, Candidate, Layer, Report, Source, Status
from syno.report.tree import tree

if TYPE_CHECKING:
    from syno.operator import Operator
    from syno.spec import Specification
    from syno.store import Evaluation, StudySummary

TEST = "test"
STOP_TEXTS = {
    "evaluations": "all evaluations that were asked for are done",
    "seconds": "the time limit is reached",
    "exhausted": "every operator of the space was proposed",
    "interrupted": "interrupted from the keyboard",
}


def gather(summary: StudySummary) -> Report:
    """The report of a study. Operators are read from their text; formulas and code come from them.

    UserError when the store holds an operator text that this version cannot read.
    """
    settings = summary.study.settings
    specification = read_specification(summary.study.specification)
    by_ask: dict[int, list[Evaluation]] = {}
    for evaluation in summary.evaluations:
        by_ask.setdefault(evaluation.ask, []).append(evaluation)
    candidates = tuple(
        _candidate(found, specification, settings, _moment(summary.study.created))
        for _, found in sorted(by_ask.items())
    )
    model, data = settings.get("model"), settings.get("data")
    return Report(
        title=f"{model} on {data}" if model and data else summary.study.name,
        asked=asked(summary),
        baseline=_baseline(summary),
        candidates=candidates,
        rejections=dict(summary.rejections),
        final=any(c.test_accuracy is not None for c in candidates),
        stop_reason=STOP_TEXTS.get(summary.stop_reason, summary.stop_reason),
    )


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _baseline(summary: StudySummary) -> Baseline:
    found = summary.baseline
    if found is None:
        return Baseline()
    return Baseline(
        accuracy=found.accuracy,
        latency_ms=found.latency_ms,
        latency_spread_ms=found.latency_spread_ms,
        macs=found.macs,
        params=found.params,
    )


def _candidate(
    found: list[Evaluation],
    specification: Specification | None,
    settings: dict[str, Any],
    start: datetime.datetime,
) -> Candidate:
    """One operator from its evaluations: several seeds give a mean, the last rung counts."""
    holdout = [e for e in found if e.split != TEST]
    good = [e for e in holdout if e.accuracy is not None]
    shown = (good or holdout or found)[-1]
    scores = [e.accuracy for e in good if e.rung == shown.rung and e.accuracy is not None]
    timed = next((e for e in reversed(holdout) if e.latency_ms is not None), shown)
    tested = [e.accuracy for e in found if e.split == TEST and e.accuracy is not None]
    described = _describe(shown, specification, settings)
    return Candidate(
        number=shown.ask,
        key=shown.key or "",
        status=Status(shown.status),
        reason=shown.reason,
        accuracy=statistics.fmean(scores) if scores else None,
        accuracy_spread=statistics.stdev(scores) if len(scores) > 1 else None,
        test_accuracy=statistics.fmean(tested) if tested else None,
        latency_ms=timed.latency_ms,
        latency_spread_ms=timed.latency_spread_ms,
        latency_ratio=timed.latency_ratio,
        macs=shown.macs,
        params=shown.params,
        primitives=dict(shown.primitives),
        text=shown.text or "",
        seconds=sum(e.seconds for e in found),
        finished=max((_moment(e.finished) - start).total_seconds() for e in found),
        **described,
    )


def _describe(
    evaluation: Evaluation, specification: Specification | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """Formula, drawing, layers and code of an operator; a note in place of what cannot be made."""
    from syno.operator import Operator

    operator = Operator.from_text(evaluation.text or "", specification=specification)
    bindings = specification.bindings if specification is not None else []
    layers, notes = [], []
    originals = _originals(evaluation, settings)
    for index, binding in enumerate(bindings):
        layers.append(_layer(operator, binding, specification, index, originals))
    sources = []
    for layer in layers:
        if not layer.fits:
            continue
        try:
            sources.append(Source(layer.label, operator.source(layer.binding)))
        except UserError as error:
            notes.append(f"no code for {layer.label}: {error}")
    return {
        "formula": operator.formula(),
        "dot": operator.dot(),
        "tree": tree(operator.to_json()),
        "layers": tuple(layers),
        "sources": tuple(_distinct(sources)),
        "note": "\n".join(notes),
    }


def _layer(
    operator: Operator,
    binding: dict[str, int],
    specification: Specification | None,
    index: int,
    originals: dict[str, int],
) -> Layer:
    counts = specification.multiplicities if specification is not None else []
    multiplicity = counts[index] if index < len(counts) else 1
    try:
        macs: int | None = operator.macs(binding)
    except UserError:
        # The operator does not fit this layer's sizes: the layer keeps its original.
        macs = None
    label = _binding_name(binding)
    return Layer(binding, multiplicity, macs, originals.get(label), fits=macs is not None)


def _originals(evaluation: Evaluation, settings: dict[str, Any]) -> dict[str, int]:
    """MACs of the original layer by binding, as far as the store says them."""
    layers = evaluation.details.get("layers") or settings.get("layers") or []
    return {
        _binding_name(layer["binding"]): layer["original_macs"]
        for layer in layers
        if layer.get("original_macs")
    }


def _binding_name(binding: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(binding.items()))


def _distinct(sources: Iterable[Source]) -> list[Source]:
    """One entry for equal code: bindings that differ only in what code does not depend on."""
    merged: dict[str, list[str]] = {}
    for source in sources:
        merged.setdefault(source.code, []).append(source.binding)
    return [Source(" and ".join(names), code) for code, names in merged.items()]
