"""`syno demo`: the whole way on embedded images, in a few minutes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.report import Report
    from syno.report.model import Candidate
    from syno.store import StudySummary

# What the demonstration promises about the operators it trains.
_LEAST_MULTISETS = 5
_LEAST_SPREAD = 4.0
_LEAST_WINDOWS = 0.5
_LEAST_TWO_WEIGHTS = 0.25
_MODEL = "resnet-small"
_DATA = "digits"


@framework.command(
    name="demo",
    examples=[
        ("the demonstration, and then look at build/demo/report.html", "syno demo"),
        ("a shorter one", "syno demo --operators 8 --out /tmp/demo"),
    ],
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("build/demo"),
    show_default=True,
    help="Folder for everything that is written.",
)
@click.option(
    "--operators",
    type=click.IntRange(min=1),
    default=32,
    show_default=True,
    help="How many operators to train.",
)
@options.seed_option
@output.dry_run_option
@output.json_option
def command(out: Path, operators: int, seed: int, dry_run: bool, as_json: bool) -> int:
    """Compose operators, train a small network with each, and report, on embedded images.

    The data are the 1,797 handwritten digits of scikit-learn, 8 x 8 pixels; nothing is downloaded.
    Writes report.html, front.png, progress.png, the store, summary.json, and the best operator as
    files that run without Syno. The exit code is 1 when anything promised did not come out.
    """
    if dry_run:
        text = f"train the original network and {operators} operators on {_DATA}, into {out}"
        output.echo(json.dumps({"would": text}) if as_json else f"would {text}; 2 to 5 minutes")
        return framework.OK
    began = time.monotonic()
    _make_folder(out)
    summary = _search(out, operators, seed)
    report = _write_report(summary, out)
    exported = _export_best(report, summary, out)
    result = _result(report, exported, operators, time.monotonic() - began)
    (out / "summary.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    if as_json:
        output.print_json(result)
    else:
        _print(result, report, out)
    return framework.NEGATIVE if result["missing"] else framework.OK


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {out}: {error.strerror}") from error


def _search(out: Path, operators: int, seed: int) -> StudySummary:
    from syno.cli import running

    output.say(f"composing operators and training {_MODEL} on {_DATA} with each of {operators}")
    return running.search(
        {
            "net": _MODEL,
            "data": _DATA,
            "evaluations": operators,
            "method": "diverse",
            "seed": seed,
            "store": str(out / "demo.db"),
            "name": "demo-",
        }
    )


def _write_report(summary: StudySummary, out: Path) -> Report:
    from syno.report import gather, write_page, write_pictures

    report = gather(summary)
    write_page(report, out / "report.html")
    write_pictures(report, out)
    return report


def best_of(report: Report) -> Candidate | None:
    """The fastest operator within a point of the baseline, else the most accurate one."""
    from syno.report.sections import fastest_within_a_point

    return fastest_within_a_point(report) or next(iter(report.trained), None)


def _export_best(report: Report, summary: StudySummary, out: Path) -> dict[str, Any]:
    """Export the best operator with trained weights, a file a layer, and run all without Syno."""
    from syno.codegen.export import export_slots
    from syno.codegen.export.isolated import run_without_syno
    from syno.study.training.retraining import Retraining

    best = best_of(report)
    if best is None:
        return {"path": None, "ran_without_syno": False, "output": "no operator was trained"}
    net, training = Retraining(summary).train(best.text)
    folder = out / f"operator_{best.short}"
    _make_folder(folder)
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
    report: Report, exported: dict[str, Any], wanted: int, seconds: float
) -> dict[str, Any]:
    from syno.report.pareto import front, latency

    trained = report.trained
    diversity = _diversity(trained)
    result = {
        "operators_trained": len(trained),
        "baseline": {
            "accuracy": report.baseline.accuracy,
            "latency_ms": report.baseline.latency_ms,
            "macs": report.baseline.macs,
        },
        "best": [_candidate(c) for c in reversed(front(trained, latency))],
        "exported": exported,
        "seconds": round(seconds, 1),
        "diversity": diversity,
    }
    return result | {"missing": _missing(result, wanted)}


def _candidate(c: Candidate) -> dict[str, Any]:
    return {
        "key": c.key,
        "formula": c.formula,
        "accuracy": c.accuracy,
        "latency_ms": c.latency_ms,
        "latency_ratio": c.latency_ratio,
        "macs": c.macs,
        "params": c.params,
    }


def _diversity(trained: tuple[Candidate, ...]) -> dict[str, Any]:
    macs = [c.macs for c in trained if c.macs]
    return {
        "distinct_keys": len({c.key for c in trained}),
        "multisets_of_primitives": len({tuple(sorted(c.primitives.items())) for c in trained}),
        "macs_spread": round(max(macs) / min(macs), 2) if macs else 0.0,
        "with_a_window": sum(c.primitives.get("unfold", 0) > 0 for c in trained),
        "with_two_weights": sum(c.primitives.get("contract", 0) >= 2 for c in trained),
    }


def _missing(result: dict[str, Any], wanted: int) -> list[str]:
    """What the demonstration promises and did not show, in words."""
    count, found = result["operators_trained"], result["diversity"]
    # A short demonstration cannot show as many kinds.
    least = min(_LEAST_MULTISETS, wanted)
    checks = (
        (count >= wanted, f"{count} operators were trained, {wanted} were asked for"),
        (found["distinct_keys"] == count, "two operators are the same"),
        (found["multisets_of_primitives"] >= least, f"fewer than {least} kinds of operators"),
        (wanted < 8 or found["macs_spread"] >= _LEAST_SPREAD, "MACs spread less than 4 times"),
        (found["with_a_window"] >= _LEAST_WINDOWS * count, "fewer than half have a window"),
        (found["with_two_weights"] >= _LEAST_TWO_WEIGHTS * count, "too few have two weights"),
        (result["baseline"]["accuracy"] is not None, "the original network was not trained"),
        (result["exported"]["ran_without_syno"], "the exported operator did not run"),
    )
    return [words for fine, words in checks if not fine]


def _print(result: dict[str, Any], report: Report, out: Path) -> None:
    from syno.report import format as fmt

    base = report.baseline
    rows = [["original", fmt.percent(base.accuracy), fmt.milliseconds(base.latency_ms)]]
    rows[0] += [fmt.ratio(1.0), fmt.count(base.macs), fmt.count(base.params), ""]
    for entry in result["best"]:
        rows.append(
            [
                entry["key"][:8],
                fmt.percent(entry["accuracy"]),
                fmt.milliseconds(entry["latency_ms"]),
                fmt.ratio(entry["latency_ratio"]),
                fmt.count(entry["macs"]),
                fmt.count(entry["params"]),
                entry["formula"].split("\n")[0],
            ]
        )
    columns = [("Pareto front", "left"), ("accuracy", "right"), ("latency", "right")]
    columns += [("ratio", "right"), ("MACs", "right"), ("params", "right"), ("formula", "fold")]
    screen = output.console()
    screen.print(output.table(columns, rows))
    found, exported = result["diversity"], result["exported"]
    facts = (
        ("operators trained", f"{result['operators_trained']}, all checked and timed"),
        (
            "kinds",
            f"{found['multisets_of_primitives']} multisets of primitives, MACs spread "
            f"{found['macs_spread']:g} times, {found['with_a_window']} with a window, "
            f"{found['with_two_weights']} with two weights",
        ),
        ("exported", f"{len(exported.get('files', ()))} layers beside {exported['path']}"),
        ("without Syno", exported["output"].rpartition("\n")[2]),
        ("report", str(out / "report.html")),
        ("took", fmt.duration(result["seconds"])),
    )
    for name, value in facts:
        screen.print(f"{name:<18} {value}", soft_wrap=True)
    for words in result["missing"]:
        output.say(f"missing: {words}")
