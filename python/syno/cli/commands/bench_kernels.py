"""`syno bench kernels`: operators as compiled code, beside convolutions in the same run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno import Operator
    from syno.measure.kernels import KernelRun

_DEFAULT = "conv2d,operator-1,operator-2"


@framework.command(
    name="kernels",
    examples=[
        ("the paper's operators in ResNet-18's layers", "syno bench kernels --json"),
        (
            "one thread, the compiled code alone",
            "syno bench kernels --forms none --threads 1 --batch 1",
        ),
        (
            "beside the step-by-step lowering under torch.compile max-autotune",
            "syno bench kernels --forms straightforward --operators operator-1 \\\n"
            "      --layers 64@56,512@7 --batch 1 --form-seconds 60",
        ),
        (
            "the whole zoo and thirty drawn operators against the roofline",
            "syno bench kernels --operators zoo --drawn 30 --forms none --picture kernels.png",
        ),
    ],
)
@click.option(
    "--operators",
    metavar="NAMES",
    default=_DEFAULT,
    show_default=True,
    help="Names of the zoo, or `zoo` for all of it.",
)
@click.option(
    "--drawn",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="So many operators of paper/resnet18 as well, drawn from those of up to 8 steps.",
)
@click.option(
    "--batch",
    "batches",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1, 8),
    show_default=True,
    help="Batch size; repeat.",
)
@click.option(
    "--forms",
    metavar="NAMES",
    default="eager,frozen",
    show_default=True,
    help="How PyTorch runs each operator beside: eager, frozen, straightforward, or none.",
)
@click.option(
    "--layers",
    metavar="NAMES",
    default="all",
    show_default=True,
    help="CHANNELS@SIZE of ResNet-18's layers, such as 64@56,512@7.",
)
@click.option(
    "--form-seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="How long PyTorch may take to build one form of one operator in one layer.",
)
@click.option(
    "--measure-plans",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Also with the fastest of the N cheapest plans, found by measurement: compiled and eager.",
)
@click.option("--threads", type=click.IntRange(1, MOST_THREADS), default=2, show_default=True)
@options.kernel_rounds_option
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="A PNG or PDF.")
@options.seed_option
@output.json_option
def command(
    operators: str,
    drawn: int,
    batches: tuple[int, ...],
    forms: str,
    layers: str,
    form_seconds: float | None,
    measure_plans: int | None,
    threads: int,
    rounds: int,
    picture: Path | None,
    seed: int,
    as_json: bool,
) -> int:
    """Time operators as compiled C++ and in PyTorch, in ResNet-18's four layers.

    Each kernel is checked against the reference interpreter first, and a time below the machine's
    roofline is an error. Speedups are over PyTorch's own 3x3 convolution in the same round. With
    the default forms this takes some minutes, most of them in torch.compile.
    """
    from syno.experiments.kernels import drawn_operators, forms_named, layers_named, zoo_operators

    wanted = forms_named(forms)
    chosen = zoo_operators(operators) | drawn_operators(drawn, seed)
    return _measure(
        chosen,
        batches,
        wanted,
        threads,
        rounds,
        picture,
        as_json,
        layers=layers_named(layers),
        form_seconds=form_seconds,
        measured_plans=measure_plans or 0,
    )


@framework.command(
    name="bench",
    examples=[
        ("all of them, against the roofline", "syno zoo bench --picture zoo.png"),
        ("two of them on one thread", "syno zoo bench operator-1 depthwise --threads 1"),
    ],
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--threads", type=click.IntRange(1, MOST_THREADS), default=2, show_default=True)
@click.option("--rounds", type=click.IntRange(min=20), default=30, show_default=True)
@click.option("--picture", type=click.Path(dir_okay=False, path_type=Path), help="A PNG or PDF.")
@output.json_option
def zoo_command(
    names: tuple[str, ...], threads: int, rounds: int, picture: Path | None, as_json: bool
) -> int:
    """Time the operators as compiled C++ in ResNet-18's four layers, at batch size 1.

    A sequence has as many positions as the layer's map. `syno bench kernels` has more options.
    """
    from syno.experiments.kernels import zoo_operators

    chosen = zoo_operators(",".join(names) or "zoo")
    return _measure(chosen, (1,), [], threads, rounds, picture, as_json)


def _measure(
    chosen: dict[str, Operator],
    batches: tuple[int, ...],
    wanted: list[str],
    threads: int,
    rounds: int,
    picture: Path | None,
    as_json: bool,
    *,
    layers: Sequence[tuple[int, int]] | None = None,
    form_seconds: float | None = None,
    measured_plans: int = 0,
) -> int:
    from syno.experiments.kernels import described
    from syno.measure import kernels

    runs = []
    layers = layers or kernels.RESNET18_LAYERS
    for batch in batches:
        bindings = {
            f"{channels}@{size}": kernels.bindings_of(chosen, channels, size, batch)
            for channels, size in layers
        }
        each = 1 + len(wanted) + (measured_plans > 0) * (1 + ("eager" in wanted))
        steps = sum(each * len(of_layer) + 1 for of_layer in bindings.values())
        done = -1
        with output.progress(f"batch {batch}", steps, remaining=False) as move:

            def progress(remark: str, move: output.Move = move) -> None:
                nonlocal done
                done += 1
                move(done, remark)

            runs.append(
                kernels.bench_kernels(
                    chosen,
                    bindings=bindings,
                    threads=threads,
                    rounds=rounds,
                    torch_forms=wanted,
                    form_seconds=form_seconds,
                    measured_plans=measured_plans,
                    convolutions={f"{c}@{s}": (c, s) for c, s in layers},
                    progress=progress,
                )
            )
    if picture is not None:
        from syno.measure.kernel_picture import draw

        draw(runs, picture)
    if as_json:
        output.print_json(described(runs, batches, rounds))
    else:
        for batch, run in zip(batches, runs, strict=True):
            _print(run, batch)
    return framework.OK


def _print(run: KernelRun, batch: int) -> None:
    from syno.experiments.kernels import speedups

    screen = output.console()
    peak = run.roofline.flops / 1e9
    screen.print(
        output.heading(
            f"batch {batch}, {run.threads} threads, {peak:.0f} GFLOP/s at most",
            "   (noisy: something else used the machine)" if run.noisy else "",
        )
    )
    rows = [
        [
            time.layer,
            time.kernel,
            f"{time.best_ms:.3f}",
            f"{time.median_ms:.3f}",
            "" if time.speedup is None else f"{time.speedup:.2f}x",
            "" if time.roofline is None else f"{100 * time.roofline:.0f} %",
            f"{time.outputs:,}" if time.outputs else "",
        ]
        for time in run.times
    ]
    columns = [("layer", "left"), ("kernel", "left"), ("best ms", "right"), ("median ms", "right")]
    columns += [("over conv2d", "right"), ("of roofline", "right"), ("outputs checked", "right")]
    screen.print(output.table(columns, rows))
    summary = [
        [name, *(("" if v is None else f"{v:.2f}") for v in values.values())]
        for name, values in speedups(run, batch).items()
    ]
    headings = [("geometric mean", "left"), ("over conv2d", "right")]
    headings += [("over the best conv2d", "right"), ("of roofline", "right")]
    headings += [("measured plan over the cheapest", "right")]
    headings += [("over straightforward", "right")]
    kept = [n for n in range(len(headings)) if n == 0 or any(row[n] for row in summary)]
    summary = [[row[n] for n in kept] for row in summary]
    screen.print(output.table([headings[n] for n in kept], summary))
    for absent in run.missing:
        screen.print(
            f"{absent.layer} {absent.kernel}: not measured: {absent.reason}", highlight=False
        )
    for choice in run.chosen:
        if choice.number != 1:
            screen.print(
                f"{choice.layer} {choice.kernel}: plan {choice.number}, {choice.speedup:.2f}x",
                highlight=False,
            )
