"""`syno experiment projection`: a projection of a language model beside its original."""

from __future__ import annotations

import math
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syno._util.errors import UserError
from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output
from syno.report import format as fmt

if TYPE_CHECKING:
    from syno.experiments.projection import Comparison

_PAUSED = 128 + signal.SIGTERM


@framework.command(
    name="projection",
    examples=[
        (
            "the paper's projection in a small GPT-2, two seeds, about twenty minutes",
            "syno experiment projection --data ~/text --seeds 2 --out projection.json",
        ),
        (
            "one that a search found, for programs",
            "syno experiment projection found/1.82_3f2a --data ~/text --out mine.json --json",
        ),
        (
            "a first look",
            "syno experiment projection --data ~/text --steps 20 --out look.json",
        ),
    ],
)
@click.argument("op", default="gpt2-projection")
@click.option("--data", required=True, metavar="NAME", help="A text.")
@options.data_dir_option
@click.option("--model", default="gpt2-small", show_default=True, metavar="NAME")
@options.model_option_option
@click.option(
    "--fidelity",
    default="fast/text",
    show_default=True,
    metavar="NAME",
    help="How long and by which recipe; one with steps.",
)
@click.option("--steps", type=click.IntRange(min=1), help="Changes its steps.")
@click.option("--context", type=click.IntRange(min=1), help="Changes its context.")
@click.option("--batch", type=click.IntRange(min=1), help="Changes its batch.")
@click.option(
    "--binding",
    default="g=32,k=2",
    show_default=True,
    metavar="SIZES",
    help="Sizes of the operator's own.",
)
@click.option(
    "--seeds", type=click.IntRange(min=1), default=2, show_default=True, help="How many trainings."
)
@options.seed_option
@click.option("--threads", type=click.IntRange(1, MOST_THREADS), default=1, show_default=True)
@click.option(
    "--rounds",
    type=click.IntRange(min=2),
    default=30,
    show_default=True,
    help="Training steps that are timed of each.",
)
@click.option(
    "--out",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file of results (JSON); one that is there is gone on with.",
)
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where the picture goes (PNG). [beside --out]",
)
@output.json_option
def command(
    op: str,
    data: str,
    fidelity: str,
    seeds: int,
    seed: int,
    threads: int,
    rounds: int,
    out: Path,
    picture: Path | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Compare a projection with the original's at equal steps, and at equal time.

    OP is an operator as every command takes it; without it, the paper's. Both are timed in turns;
    then both are trained for the same steps, and the operator once more for the steps that take
    the time of the original's. The exit code is 1 when a training failed.
    """
    from syno.cli.commands.search import numbers
    from syno.experiments.pictures import save_projection
    from syno.experiments.projection import PausedError, compare_projection
    from syno.operands.layers import layer_specification
    from syno.operands.named import named_operators
    from syno.operators.specification import checked_binding
    from syno.study.training.trainings import Trainings
    from syno.train import fidelity as named_fidelity

    names = ("steps", "context", "batch")
    changes = {name: value for name in names if (value := given[name]) is not None}
    trainings = Trainings(
        model=given["model"],
        model_options=numbers(given["model_options"]),
        data=data,
        data_dir=given["data_dir"],
        fidelity=named_fidelity(fidelity).changed(**changes),
        seeds=tuple(range(seed, seed + seeds)),
        baseline=True,
        sizes=checked_binding(given["binding"]),
        threads=threads,
    )
    trainings.prepare()
    layers = layer_specification(trainings.network(seed).template, trainings.sizes)
    chosen = named_operators([op], layers=layers)
    if len(chosen) != 1:
        raise UserError(f"'{op}' names {len(chosen)} operators\n  expected: one")
    trainings.adopt(chosen)
    try:
        with output.progress("training", 3 * seeds) as move:
            found = compare_projection(
                trainings.network,
                trainings.operators[0],
                trainings.text(),
                trainings.fidelity,
                seeds=trainings.seeds,
                path=out,
                settings={
                    "model": trainings.model,
                    "model_options": trainings.model_options,
                    "name": chosen[0].name,
                    "sizes": dict(trainings.sizes),
                    "threads": threads,
                },
                threads=threads,
                rounds=rounds,
                progress=lambda done, total, remark: move(done, remark),
            )
    except PausedError:
        output.say(f"paused; the same command goes on, from {out}")
        return _PAUSED
    picture = picture or out.with_suffix(".png")
    save_projection(found, picture)
    if as_json:
        output.print_json(found.as_json() | {"out": str(out), "picture": str(picture)})
    else:
        _print(found, out, picture)
    return framework.OK if all(run.status == "ok" for run in found.runs) else framework.NEGATIVE


def _print(found: Comparison, out: Path, picture: Path) -> None:
    from syno.experiments.projection import ORIGINAL

    assert found.timing is not None
    lines = []
    for row in found.rows():
        what, way, spread, pair = row.what, row.way, row.loss, row.beside
        bits = found.values(what, way, "bits_a_byte")
        lines.append(
            [
                f"{what}, equal {way}" if what != ORIGINAL else what,
                f"{row.steps:,}",
                fmt.MISSING if spread is None else _number(spread.mean, spread.deviation),
                _number(None if spread is None else math.exp(spread.mean), None, 2),
                _number(sum(bits.values()) / len(bits) if bits else None),
                "" if pair is None else f"{pair.difference:+.4f}",
                "" if pair is None else f"{pair.wins} of {pair.count}",
            ]
        )
    headings = [("", "left"), ("steps", "right"), ("held-out loss", "right")]
    headings += [("perplexity", "right"), ("bits a byte", "right"), ("difference", "right")]
    headings += [("better", "right")]
    screen = output.console()
    screen.print(output.table(headings, lines))
    timing = found.timing
    rows = [
        [
            name,
            *(f"{value:.1f}" for value in (t.forward_ms, t.backward_ms, t.update_ms, t.step_ms)),
        ]
        for name, t in ((ORIGINAL, timing.original), ("operator", timing.operator))
    ]
    columns = [("", "left"), ("forward, ms", "right"), ("backward, ms", "right")]
    columns += [("update, ms", "right"), ("step, ms", "right")]
    screen.print(output.table(columns, rows))
    output.say(
        f"a step of the operator takes {timing.ratio:.3f} of the original's (median of "
        f"{timing.rounds} rounds); results: {out}; picture: {picture}"
    )


def _number(value: float | None, deviation: float | None = None, digits: int = 4) -> str:
    if value is None:
        return fmt.MISSING
    spread = "" if deviation is None else f" ± {deviation:.{digits}f}"
    return f"{value:.{digits}f}{spread}"
