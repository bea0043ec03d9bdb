"""`syno bench engines`: known networks in Syno and in other inference engines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from syno._util import checks
from syno._util.options import Options, option
from syno.cli import framework, options, output


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    networks: str = option("Networks by name, separated by commas.", "", unset="all")
    engines: str = option(
        "Engines by name, as for `syno bench network`, separated by commas.",
        "",
        unset="those of float32",
    )
    batches: str = option("Numbers of images of a call, separated by commas.", "1,8")
    threads: str = option("Numbers of threads, separated by commas.", "2,1")
    passes: int = option("Processes for each engine alone.", 2, minimum=1)
    rounds: int = option("Times in each process.", 30, minimum=2)
    alone: bool = option("Leave out the process of all engines in turns.", False)
    out: Path = option(
        "File of the results (JSON); an existing file is continued.",
        Path("networks.json"),
        names="--out/-o",
    )
    picture: Path | None = option("File of a picture (PNG or PDF).", None, unset="none")
    show: bool = option("Print the results in --out, and measure nothing.", False)
    as_json: bool = output.as_json()


@framework.command("bench engines", _Arguments)
def command(given: _Arguments) -> int:
    """Measure known networks in Syno's engines beside ONNX Runtime, OpenVINO and TorchInductor.

    The networks are those of torchvision and timm that people deploy, and a detector with three
    outputs, in float32, or in the formats of --engines, whose ranges come from random images. Each
    engine is alone in a process, because engines disturb each other, and then all of them run in
    turns in one process. Where both differ by more than a tenth, the table prints the second in
    brackets. Each result is stored as soon as it is there, and the same command continues. Leave
    the machine alone meanwhile: times of a busy one are not comparable.
    """
    from syno_lab.experiments.networks import sweep, tables

    if given.show:
        found = sweep.read(given.out)
    else:
        asked = sweep.NetworksSweep(
            networks=options.names(given.networks) or sweep.zoo.names(),
            engines=options.names(given.engines) or sweep.ENGINES,
            settings=[
                sweep.Setting(batch, threads)
                for threads in checks.parsed_numbers("--threads", given.threads, "threads", "2,1")
                for batch in checks.parsed_numbers("--batches", given.batches, "images", "1,8")
            ],
            passes=given.passes,
            rounds=given.rounds,
            in_turns=not given.alone,
        )
        framework.resumable(framework.this_command())
        with output.progress("processes", None) as move:
            found = sweep.measure(
                given.out,
                asked,
                progress=lambda done, total, what: move(done, f"of {total}: {what}"),
            )
    if given.picture is not None:
        from syno_lab.experiments.networks.picture import save_ratios

        save_ratios(found, given.picture)
    if given.as_json:
        output.print_json(found.to_json())
        return framework.OK if found.visits else framework.NEGATIVE
    for setting in found.settings():
        output.echo(tables.heading(found, setting))
        output.show(tables.times_table(found, setting))
        output.echo("until the first call / to load again / files / memory of the process")
        output.show(tables.start_table(found, setting))
    for line in tables.failures(found):
        output.echo(line)
    return framework.OK if found.visits else framework.NEGATIVE
