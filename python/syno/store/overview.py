"""How far a study is and what it found, as plain values."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypedDict

from syno._util.checks import short
from syno.operators.summary import identity
from syno.store.evaluation import Evaluation
from syno.store.log import EVALUATED
from syno.store.objectives import expected_improvement, stale
from syno.store.records import REJECTED, EventRecord, QuarantineRecord
from syno.store.summary import StudySummary

# `syno status` says what so many further results are expected to improve.
NEXT = 10
# So many reasons of trainings without a result are named.
MOST_REASONS = 3


def best_of(summary: StudySummary) -> Evaluation | None:
    """The best operator that was trained; of equals the one proposed first.

    It satisfies the constraints of the study; of several objectives, the accuracy, the loss or the
    metric decides.
    """
    objectives = summary.objectives
    allowed = (e for e in summary.compared if objectives.violation(e) == 0)
    return max(allowed, key=lambda e: (score(summary, e), -e.ask), default=None)


def score(summary: StudySummary, evaluation: Evaluation) -> float:
    """Greater is better; without a result, below all."""
    value = summary.quality(evaluation)
    return -math.inf if value is None else summary.objective.score(value)


def trained(summary: StudySummary) -> int:
    """Trainings that gave an accuracy, of a ladder at its lowest rung."""
    return sum(e.rung_index == 0 for e in summary.trained)


def rejected(summary: StudySummary) -> int:
    """Operators that were rejected before or during training, such as those that diverged."""
    return sum(e.rung_index == 0 and e.status == REJECTED for e in summary.evaluations)


def failed(summary: StudySummary) -> int:
    """Trainings that ended in an error or at a time limit."""
    evaluated = sum(e.rung_index == 0 for e in summary.evaluations)
    return evaluated - trained(summary) - rejected(summary)


def failure_reasons(summary: StudySummary) -> list[str]:
    """Why no operator was trained: each reason with its number, the most frequent first.

    Of a study in which one was trained, none; of one that ended before, that of the baseline.
    """
    if summary.trained:
        return []
    reasons = Counter(f"{e.status}: {e.reason}" for e in summary.evaluations)
    if not reasons:
        return [
            f"the baseline, {e.status}: {short(e.reason)}" for e in summary.baselines if e.reason
        ]
    found = [f"{n} x {short(text)}" for text, n in reasons.most_common(MOST_REASONS)]
    more = len(reasons) - len(found)
    return [*found, f"and {more} other reasons"] if more else found


def ordered(summary: StudySummary) -> list[Evaluation]:
    """One evaluation an operator, the best first; with a ladder those of a higher rung first, each
    at the highest that it reached."""
    listed = list(summary.evaluations)
    if summary.rungs:  # a failure at a higher rung does not take back what it gave below
        by_rung = sorted(listed, key=lambda e: (e.accuracy is not None, e.rung_index))
        listed = list({e.ask: e for e in by_rung}.values())
    return sorted(listed, key=lambda e: (-e.rung_index, -score(summary, e), e.ask))


def running_seconds(events: Sequence[EventRecord]) -> float:
    """Sum up the seconds from the start of each run to its last event."""
    total = 0.0
    first = last = None
    for event in events:
        if event.kind == EVALUATED:  # `syno report --final` adds it after the run, perhaps days
            continue
        moment = datetime.datetime.fromisoformat(event.created)
        if event.kind in ("started", "resumed"):
            total += (last - first).total_seconds() if first and last else 0.0
            first = moment
        last = moment
    return total + ((last - first).total_seconds() if first and last else 0.0)


def trials_an_hour(summary: StudySummary) -> float | None:
    """Evaluations of operators in an hour of the runs so far; None before the first one."""
    seconds = running_seconds(summary.events)
    count = sum(e.is_evaluated for e in summary.evaluations)
    return 3600 * count / seconds if count and seconds > 0 else None


def since_progress(summary: StudySummary) -> int:
    """The number of latest operators that improved neither the best result nor the hypervolume."""
    return stale(summary.progress)


def next_improvement(summary: StudySummary) -> float | None:
    """By how much the next `NEXT` results are expected to improve the best or the hypervolume."""
    return expected_improvement(summary.progress, NEXT)


class Remaining(TypedDict):
    """What is left of a study: operators, and about how many seconds (None: not known)."""

    study: str
    done: int
    left: int
    seconds: float | None


def remaining(summary: StudySummary, evaluations: int | None) -> Remaining:
    """What is left to do of a study with that limit (None: its own), by the time taken so far."""
    taken = [e.seconds for e in summary.evaluations if e.is_evaluated]
    # With a ladder, an operator takes the time of its higher rungs, too.
    done = sum(e.is_evaluated and e.rung_index == 0 for e in summary.evaluations)
    wanted = evaluations or int(summary.settings.get("evaluations", 0))
    left = max(0, wanted - done)
    seconds = left * sum(taken) / done if done else None
    return {"study": summary.study.name, "done": done, "left": left, "seconds": seconds}


def study_json(summary: StudySummary, *, operators: bool) -> dict[str, object]:
    """A study as plain values, the same for every command."""
    best = best_of(summary)
    objective = summary.objective.name
    entry: dict[str, object] = {
        "name": summary.study.name,
        "created": summary.study.created,
        "asked_for": summary.settings.get("evaluations"),
        "trained": trained(summary),
        "rejected": rejected(summary),
        "failed": failed(summary),
        "open": len(summary.open_asks),
        "stop_reason": summary.stop_reason,
        "objective": objective,
        "objectives": [str(each) for each in summary.objectives.all],
        "constraints": [str(bound) for bound in summary.objectives.constraints],
        "archive": [identity(e.text or "") for e in summary.archive],
        "hypervolume": summary.hypervolume,
        "trials_an_hour": trials_an_hour(summary),
        "since_progress": since_progress(summary),
        "expected_improvement": {"results": NEXT, "improvement": next_improvement(summary)},
        "baseline_accuracy": summary.baseline.accuracy if summary.baseline else None,
        "best": _evaluation_json(best) if best is not None else None,
        "quarantined": [_quarantined_json(record) for record in summary.quarantined],
    }
    if summary.rungs:
        entry["rungs"] = [dataclasses.asdict(rung) for rung in summary.rungs]
    if summary.objective.name != "accuracy":
        entry[f"baseline_{objective}"] = summary.quality(summary.baseline)
    if operators:
        entry["operators"] = [_evaluation_json(e) for e in summary.evaluations]
    return entry


def _evaluation_json(evaluation: Evaluation) -> dict[str, object]:
    names = ("ask", "key", "status", "reason", "accuracy", "latency_ms", "latency_ratio")
    more = ("macs", "params", "seconds", "rung", "rung_index")
    found = {"id": identity(evaluation.text or "") or None}
    found |= {name: getattr(evaluation, name) for name in (*names, *more)}
    text = ("loss", "perplexity", "bits_a_byte", "predicted_latency")
    details: Mapping[str, object] = evaluation.details
    return found | {name: details[name] for name in text if name in details}


def _quarantined_json(record: QuarantineRecord) -> dict[str, object]:
    names = ("ask", "key", "failures", "kind", "reason", "updated")
    return {name: getattr(record, name) for name in names}
