"""`syno bench latency`: how well the latencies of compiled operators are predicted."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from syno._util.options import Options, option, required
from syno.cli import framework, options, output
from syno.cli.results import print_results


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    operators: int = option(
        "Number of operators: the zoo, and operators that are sampled from paper/resnet18.",
        200,
        minimum=1,
    )
    layers: int = option("Number of layers that each operator is measured in.", 2, minimum=1)
    threads: int = options.threads(1)
    seconds: float | None = option(
        "Begin no further measurement after this time.",
        None,
        minimum=0,
        above=True,
        unset="no limit",
    )
    out: Path = required(
        "File of the measured latencies (.jsonl); an existing file is continued.",
        names="--out/-o",
    )
    predictor: Path | None = option(
        "File for a predictor that is fitted to all of them (.json).", None
    )
    show: bool = option("Compare predictions with the file without measuring.", False)
    seed: int = options.seed()
    as_json: bool = output.as_json()


@framework.command("bench latency", _Arguments)
def command(given: _Arguments) -> int:
    """Measure operators in layers of networks, and compare predicted with measured latencies.

    Each kernel is first verified against the reference interpreter. Whole families of operators,
    which have the same number of each primitive, are left out in turn, and then each network. The
    same command continues a file that was stopped or killed. The exit code is 1 while kernels wait
    for their measurement.
    """
    from syno.prediction import LatencyPredictor
    from syno_lab.experiments.latency_accuracy import accuracies, table
    from syno_lab.experiments.latency_rows import measure_rows, read_rows

    if given.show:
        rows = read_rows(given.out)
    else:
        with output.progress("latencies", None) as move:
            rows = measure_rows(
                given.out,
                operators=given.operators,
                layers=given.layers,
                threads=given.threads,
                seed=given.seed,
                seconds=given.seconds,
                progress=lambda done, _, what: move(done, what),
            )
    if given.predictor is not None:
        samples = [row.sample(rows.device) for row in rows.measured]
        LatencyPredictor(rows.device).fit(samples).save(given.predictor)
    found = accuracies(rows, given.seed)
    noisy = sum(row.noisy for row in rows.measured)
    if given.as_json:
        print_results(
            {
                "accuracies": [dataclasses.asdict(each) for each in found],
                "device": rows.device.to_json(),
                "operators": len({row.operator for row in rows.measured}),
                "kernels": len(rows.measured),
                "noisy": noisy,
                "pending": rows.pending,
                "missing": [[*row.name, row.reason] for row in rows.missing],
            },
            threads=rows.device.threads,
        )
    else:
        output.show(table(found))
        threads = rows.device.threads
        output.echo(
            f"{len(rows.measured)} kernels on {rows.device.name}, {threads} "
            f"thread{'s' if threads > 1 else ''}; {noisy} of them while the machine was noisy; "
            f"{rows.pending} pending"
        )
        for row in rows.missing:
            output.echo(f"{row.operator} in {row.network} {row.layer}: not measured: {row.reason}")
    return framework.NEGATIVE if rows.pending else framework.OK
