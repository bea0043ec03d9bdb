"""Studies as tables of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from syno._util import numbers
from syno._util.tables import Table
from syno.operators.summary import short_id
from syno.store.documents import EngineTime
from syno.store.evaluation import Evaluation
from syno.store.overview import (
    NEXT,
    best_of,
    failed,
    failure_reasons,
    next_improvement,
    ordered,
    rejected,
    since_progress,
    trained,
    trials_an_hour,
)
from syno.store.records import ADAPTATION, WorkerRecord
from syno.store.summary import StudySummary

# Of the operators on the archive, this many are named in a sentence.
_MOST_IDS = 8


def _state(summary: StudySummary) -> str:
    if summary.study.settings.get("method") == ADAPTATION:
        how = f"`syno adapt --name {summary.study.name}` with its options continues it"
        return "adaptation" if summary.stop_reason else f"adaptation, running or killed: {how}"
    if summary.stop_reason:
        return f"stopped: {summary.stop_reason}"
    return "running, or killed: `syno resume` continues it"


def _progress(summary: StudySummary) -> str:
    if summary.study.settings.get("method") == ADAPTATION:
        return numbers.MISSING
    return f"{trained(summary)} of {summary.settings.get('evaluations', '?')}"


def _baseline(summary: StudySummary) -> str:
    return _mark(summary) + summary.objective.shown(summary.quality(summary.baseline))


def _best(summary: StudySummary) -> str:
    best = best_of(summary)
    if best is None:
        return numbers.MISSING
    return _mark(summary) + summary.objective.shown(summary.quality(best))


def _mark(summary: StudySummary) -> str:
    return "" if summary.objective.is_share else f"{summary.objective.name} "


def _id(summary: StudySummary) -> str:
    best = best_of(summary)
    return short_id(best.text, best.key) if best else ""


def studies_table(summaries: Sequence[StudySummary]) -> Table:
    """One line a study."""
    return Table.of(
        summaries,
        ("study", lambda each: each.study.name),
        ("trained>", _progress),
        ("rejected>", lambda each: str(rejected(each))),
        ("failed>", lambda each: str(failed(each))),
        ("baseline>", _baseline),
        ("best>", _best),
        ("id", _id),
        ("state~", _state),
    )


def workers_table(workers: Sequence[WorkerRecord]) -> Table:
    """One line a worker."""
    return Table.of(
        workers,
        ("worker", lambda worker: worker.short_name),
        ("device~", lambda worker: worker.environment.device),
        ("tags~", lambda worker: ", ".join(worker.tags)),
        ("evaluates~", lambda worker: "" if worker.ask is None else f"trial {worker.ask}"),
        ("of study~", lambda worker: worker.study or ""),
    )


def quarantine_table(summary: StudySummary) -> Table:
    """The operators that a study proposes no more."""
    return Table.of(
        summary.quarantined,
        ("id", lambda record: short_id(record.text, record.key)),
        ("failures>", lambda record: str(record.failures)),
        ("the last time~", lambda record: record.reason),
    )


def rungs_table(summary: StudySummary) -> Table:
    """One line a rung of a search with a ladder, the highest first."""
    rungs = summary.rungs
    return Table.of(
        reversed(rungs),
        ("rung", lambda rung: rung.name),
        ("trained>", lambda rung: str(rung.evaluated)),
        ("failed>", lambda rung: str(rung.failed)),
        ("promoted>", lambda rung: "" if rung is rungs[-1] else str(rung.promoted)),
        ("stopped>", lambda rung: "" if rung is rungs[-1] else str(rung.stopped)),
        ("best>", lambda rung: numbers.percent(rung.best)),
        ("baseline>", lambda rung: numbers.percent(rung.baseline)),
        ("time>", lambda rung: numbers.duration(rung.seconds)),
    )


def operators_table(summary: StudySummary, limit: int | None = None) -> Table:
    """One line an operator, the best first, at most `limit` of them.

    `original` is the latency of the original network in the same run, which the speed-up refers to.
    """
    objective = summary.objective
    perplexity = ("perplexity>", lambda e: numbers.perplexity(summary.quality(e)))
    return Table.of(
        ordered(summary)[:limit],
        ("id", lambda e: short_id(e.text, e.key)),
        *([("rung", lambda e: e.rung)] if summary.rungs else []),
        (f"{objective.name}>", lambda e: objective.shown(summary.quality(e))),
        *([perplexity] if objective.is_entropy else []),
        ("latency>", lambda e: numbers.milliseconds(e.latency_ms)),
        ("original>", lambda e: numbers.milliseconds(e.baseline_latency_ms)),
        ("speed-up>", lambda e: numbers.speedup(e.latency_ratio)),
        *([("predicted>", _predicted)] if any(map(_predicted, summary.evaluations)) else []),
        ("MACs>", lambda e: numbers.count(e.macs)),
        ("params>?", lambda e: numbers.count(e.params)),
        ("primitives~?", lambda e: numbers.primitives(e.primitives)),
        ("status~", lambda e: e.status if e.status == "ok" else f"{e.status}: {e.reason}"),
    )


def _predicted(evaluation: Evaluation) -> str:
    """The predicted speed-up of an operator, or its predicted milliseconds; empty without one."""
    found = evaluation.details.get("predicted_latency", {})
    if "ratio" in found:
        return f"~{numbers.speedup(found['ratio'])}"
    return f"~{numbers.milliseconds(found['median_ms'])}" if found else ""


def progress_lines(summary: StudySummary) -> list[str]:
    """Sentences about the rate of a search, its last progress, and its several objectives."""
    lines = []
    if reasons := failure_reasons(summary):
        lines += ["No operator was trained:", *(f"  {each}" for each in reasons)]
    rate, last = trials_an_hour(summary), since_progress(summary)
    if rate is not None and summary.ended:
        ago = "with the last operator" if last == 0 else f"{numbers.counted(last, 'operator')} ago"
        lines.append(f"{rate:.0f} trials an hour; the last progress was {ago}.")
    gain = next_improvement(summary)
    if gain is not None:
        lines.append(
            f"The next {NEXT} operators are expected to improve {_gained(summary, gain)}, if the "
            "search continues as before."
        )
    objectives = summary.objectives
    if not objectives.are_default:
        names = ", ".join(map(str, objectives.all))
        bounds = ", ".join(map(str, objectives.constraints))
        found = summary.archive
        best = ", ".join(short_id(e.text, e.key) for e in found[:_MOST_IDS])
        more = f" and {len(found) - _MOST_IDS} more" if len(found) > _MOST_IDS else ""
        size = summary.hypervolume
        volume = "" if size is None else f" (hypervolume {size:.4g})"
        lines.append(f"Objectives: {names}" + (f"; constraints: {bounds}." if bounds else "."))
        lines.append(f"Best compromises{volume}: {best or 'none yet'}{more}.")
    return lines


def _gained(summary: StudySummary, gain: float) -> str:
    """What is improved, and by how much."""
    first, *others = summary.objectives.all
    if others:
        return f"the hypervolume by {gain:.2g}"
    name, objective = first.name, summary.objective
    return (
        f"the best {name} by {objective.spread(gain) if name == objective.name else f'{gain:.3g}'}"
    )


def engine_lines(summary: StudySummary) -> list[str]:
    """Sentences about the latency of the original network in its engine and in the best other."""
    found = summary.baseline
    if found is None or found.latency_ms is None:
        return []
    engine = found.details.get("latency_engine", "eager")
    own = _with_spread(found.latency_ms, found.latency_spread_ms)
    lines = [
        f"The original network took {own} ({engine}) in its own trial, and what `original` says in "
        "the run of an operator. A speed-up above 1 is faster."
    ]
    best = best_rival(found.details.get("rivals", {}))
    if best is not None:
        name, time = best
        other = _with_spread(time["median_ms"], time["spread_ms"])
        lines.append(f"The best other engine at hand, {name}, took {other} for it.")
    return lines


def _with_spread(median_ms: float, spread_ms: float | None) -> str:
    around = "" if spread_ms is None else f" \N{PLUS-MINUS SIGN} {numbers.milliseconds(spread_ms)}"
    return numbers.milliseconds(median_ms) + around


def best_rival(rivals: Mapping[str, EngineTime]) -> tuple[str, EngineTime] | None:
    """The fastest of the engines that ran the original network; None where there was none."""
    return min(rivals.items(), key=lambda each: each[1]["median_ms"], default=None)
