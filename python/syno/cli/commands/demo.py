"""`syno demo`: a complete search on embedded images in a few minutes."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util.options import Options, option
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno.demonstration import Demonstration
    from syno.report import Report
    from syno.store import StudySummary

_MODEL = "resnet-small"
_DATA = "digits"


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    out: Path = option("Folder to write all files to.", Path("build/demo"), metavar="DIRECTORY")
    operators: int = option("Number of operators to train.", 32, minimum=1)
    seed: int = options.seed()
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()


@framework.command("demo", _Arguments)
def command(given: _Arguments) -> int:
    """Run a complete search on embedded images: compose, train, measure and report.

    The data set is the 1,797 handwritten digits of scikit-learn, 8 x 8 pixels. The command
    downloads nothing. Operators are trained as compiled code, and latencies are those of networks
    compiled by `syno.compile`, the original network included. It writes report.html, front.png,
    progress.png, the store, summary.json, and the best operator as files that run without Syno. The
    exit code is 1 if one of these results is missing.
    """
    if given.dry_run:
        operators = f"{given.operators} operators on {_DATA}, into {given.out}"
        text = f"train the baseline network and {operators}"
        output.echo(
            json.dumps({"would": text}) if given.as_json else f"would {text}; 3 to 6 minutes"
        )
        return framework.OK
    from syno.demonstration import demonstrate, make_folder

    began = time.monotonic()
    make_folder(given.out)
    summary = _search(given.out, given.operators, given.seed)
    report, result = demonstrate(summary, given.out, given.operators, began)
    if given.as_json:
        output.print_json(result)
    else:
        _print(result, report, given.out)
    return framework.NEGATIVE if result["missing"] else framework.OK


def _search(out: Path, operators: int, seed: int) -> StudySummary:
    from syno.cli.watch import Watch
    from syno.study.search import search

    output.say(
        f"composing {operators} operators and training {_MODEL} on {_DATA} with each of them"
    )
    store = str(out / "demo.db")
    with Watch(store) as watch:
        return search(
            *(_MODEL, _DATA),
            evaluations=operators,
            method="diverse",
            seed=seed,
            store=store,
            name="demo-",
            observer=watch,
        )


def _print(result: Demonstration, report: Report, out: Path) -> None:
    from syno.demonstration import facts, front_table

    output.show(front_table(result, report))
    for name, value in facts(result, out):
        output.console().print(f"{name:<18} {value}", soft_wrap=True)
    for words in result["missing"]:
        output.say(f"missing: {words}")
