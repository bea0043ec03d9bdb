"""What a demonstration shows of its search: report, an exported operator, and kept promises."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from syno import _core
from syno._util import numbers as fmt
from syno._util.errors import UserError
from syno._util.tables import Table
from syno.report import Report, gather, write_page, write_pictures
from syno.report.model import OperatorRow
from syno.report.pareto import latency, on_front
from syno.report.sections import fastest_within_a_point
from syno.runs.files import write_text
from syno.store import StudySummary
from syno.store.environment import capture_environment

# What the demonstration promises about the operators it trains.
_LEAST_MULTISETS = 5
_LEAST_SPREAD = 4.0
_LEAST_WINDOWS = 0.5
_LEAST_TWO_WEIGHTS = 0.25


class DemonstrationExport(TypedDict, total=False):
    """The best operator as files, and whether they ran without Syno; without one, only why."""

    key: str
    path: str | None
    files: list[str]
    accuracy: float | None
    ran_without_syno: bool
    output: str


class Diversity(TypedDict):
    """How the operators that were trained differ."""

    distinct_keys: int
    multisets_of_primitives: int
    macs_spread: float
    with_a_window: int
    with_two_weights: int


class Figures(TypedDict):
    """The figures of an operator."""

    key: str
    formula: str
    accuracy: float | None
    latency_ms: float | None
    latency_ratio: float | None
    macs: int | None
    params: int | None


class Demonstration(TypedDict):
    """The content of `summary.json`."""

    operators_trained: int
    baseline: dict[str, object]
    best: list[Figures]
    exported: DemonstrationExport
    seconds: float
    diversity: Diversity
    missing: list[str]
    environment: dict[str, object]


def demonstrate(
    summary: StudySummary, out: Path, wanted: int, began: float
) -> tuple[Report, Demonstration]:
    """Writes the report of a search, its pictures, the best operator as files that run without
    Syno, and `summary.json`, the figures that are returned with the report.

    wanted: the operators that were to be trained; began: `time.monotonic()` of the beginning. What
    was promised and did not come out is in words under `missing`.
    """
    report = _write_report(summary, out)
    exported = _export_best(report, summary, out)
    result = _result(report, exported, wanted, time.monotonic() - began)
    text = json.dumps(result, indent=2, ensure_ascii=False) + "\n"
    write_text(out / "summary.json", text, "the summary", "--out")
    return report, result


def make_folder(out: Path) -> None:
    """UserError where it cannot be made."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {out}: {error.strerror}") from error


def _write_report(summary: StudySummary, out: Path) -> Report:
    report = gather(summary)
    write_page(report, out / "report.html")
    write_pictures(report, out)
    return report


def best_of(report: Report) -> OperatorRow | None:
    """The fastest operator within a point of the baseline, else the most accurate one."""
    return fastest_within_a_point(report) or next(iter(report.trained), None)


def _export_best(report: Report, summary: StudySummary, out: Path) -> DemonstrationExport:
    """Export the best operator with trained weights, a file a layer, and run all without Syno."""
    from syno.codegen.export import export_slots
    from syno.codegen.export.isolated import run_without_syno
    from syno.study.training.retraining import Retraining

    best = best_of(report)
    if best is None:
        return {"path": None, "ran_without_syno": False, "output": "no operator was trained"}
    net, training = Retraining(summary).train(best.text)
    folder = out / f"operator_{best.short}"
    make_folder(folder)
    files = [written.code for written in export_slots(net, folder)]
    run = run_without_syno(files)
    return {
        "key": best.key,
        "path": str(files[0]),
        "files": [str(file) for file in files],
        "accuracy": training.accuracy,
        "ran_without_syno": run.passed,
        "output": run.output,
    }


def _result(
    report: Report, exported: DemonstrationExport, wanted: int, seconds: float
) -> Demonstration:
    trained = report.trained
    diversity = _diversity(trained)
    return {
        "operators_trained": len(trained),
        "baseline": {
            "accuracy": report.baseline.accuracy,
            "latency_ms": report.baseline.latency_ms,
            "macs": report.baseline.macs,
        },
        "best": [_operator_row(c) for c in reversed(on_front(report, latency))],
        "exported": exported,
        "seconds": round(seconds, 1),
        "diversity": diversity,
        "missing": _missing(report, exported, diversity, wanted),
        "environment": dataclasses.asdict(capture_environment(threads=1, rules="")),
    }


def _operator_row(c: OperatorRow) -> Figures:
    return {
        "key": c.key,
        "formula": c.formula,
        "accuracy": c.accuracy,
        "latency_ms": c.latency_ms,
        "latency_ratio": c.latency_ratio,
        "macs": c.macs,
        "params": c.params,
    }


def _diversity(trained: tuple[OperatorRow, ...]) -> Diversity:
    macs = [c.macs for c in trained if c.macs]
    cores = [_core.Operator.parse(c.text) for c in trained]
    return {
        "distinct_keys": len({c.key for c in trained}),
        "multisets_of_primitives": len({tuple(sorted(c.primitives.items())) for c in trained}),
        "macs_spread": round(max(macs) / min(macs), 2) if macs else 0.0,
        "with_a_window": sum(core.windows > 0 for core in cores),
        "with_two_weights": sum(core.weights >= 2 for core in cores),
    }


def _missing(
    report: Report, exported: DemonstrationExport, found: Diversity, wanted: int
) -> list[str]:
    """What the demonstration promises and did not show, in words."""
    count = len(report.trained)
    # A short demonstration cannot show as many kinds.
    least = min(_LEAST_MULTISETS, wanted)
    checks = (
        (count >= wanted, f"{count} operators were trained, {wanted} were asked for"),
        (found["distinct_keys"] == count, "two operators are the same"),
        (found["multisets_of_primitives"] >= least, f"fewer than {least} kinds of operators"),
        (wanted < 8 or found["macs_spread"] >= _LEAST_SPREAD, "MACs spread less than 4 times"),
        (found["with_a_window"] >= _LEAST_WINDOWS * count, "fewer than half have a window"),
        (found["with_two_weights"] >= _LEAST_TWO_WEIGHTS * count, "too few have two weights"),
        (report.baseline.accuracy is not None, "the original network was not trained"),
        (exported["ran_without_syno"], "the exported operator did not run"),
    )
    return [words for fine, words in checks if not fine]


def front_table(result: Demonstration, report: Report) -> Table:
    """Return a table of the baseline and the operators on the front of a demonstration."""
    base = report.baseline
    original = Figures(
        key="baseline",
        accuracy=base.accuracy,
        latency_ms=base.latency_ms,
        latency_ratio=1.0,
        macs=base.macs,
        params=base.params,
        formula="",
    )
    return Table.of(
        [original, *result["best"]],
        ("Pareto front", lambda entry: entry["key"][:8]),
        ("accuracy>", lambda entry: fmt.percent(entry["accuracy"])),
        ("latency>", lambda entry: fmt.milliseconds(entry["latency_ms"])),
        ("speed-up>", lambda entry: fmt.speedup(entry["latency_ratio"])),
        ("MACs>", lambda entry: fmt.count(entry["macs"])),
        ("params>", lambda entry: fmt.count(entry["params"])),
        ("formula~", lambda entry: entry["formula"].partition("\n")[0]),
    )


def facts(result: Demonstration, out: Path) -> Sequence[tuple[str, str]]:
    """Return the results of a demonstration by name; out: its folder."""
    found, exported = result["diversity"], result["exported"]
    return (
        ("operators trained", f"{result['operators_trained']}, all verified and timed"),
        (
            "kinds",
            f"{found['multisets_of_primitives']} multisets of primitives, MACs differ by a factor "
            f"of {found['macs_spread']:g}, {found['with_a_window']} with a window, "
            f"{found['with_two_weights']} with two weights",
        ),
        ("exported", f"{len(exported.get('files', ()))} layers next to {exported['path']}"),
        ("without Syno", exported["output"].rpartition("\n")[2]),
        ("report", str(out / "report.html")),
        ("time", fmt.duration(result["seconds"])),
    )
