"""`syno demo`: the whole way on embedded images, in a few minutes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.experiments.demonstration import Demonstration
    from syno.report import Report
    from syno.store import StudySummary

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
    from syno.experiments.demonstration import demonstrate, make_folder

    began = time.monotonic()
    make_folder(out)
    summary = _search(out, operators, seed)
    report, result = demonstrate(summary, out, operators, began)
    if as_json:
        output.print_json(result)
    else:
        _print(result, report, out)
    return framework.NEGATIVE if result["missing"] else framework.OK


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


def _print(result: Demonstration, report: Report, out: Path) -> None:
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
