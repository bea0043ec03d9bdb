"""`syno bench kernels`: operators as compiled code, beside convolutions in the same run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from syno._util.options import Options, option
from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output

if TYPE_CHECKING:
    from syno import Operator
    from syno.measure.kernels import KernelRun

_DEFAULT = "conv2d,operator-1,operator-2"


@dataclass(frozen=True, kw_only=True)
class _KernelArguments(Options):
    operators: str = option("Names of the zoo, or `zoo` for all of it.", _DEFAULT, metavar="NAMES")
    drawn: int = option(
        "So many operators of paper/resnet18 as well, drawn from those of up to 8 steps.",
        0,
        minimum=0,
    )
    batches: tuple[int, ...] = option("Batch size; repeat.", (1, 8), minimum=1, names="--batch")
    forms: str = option(
        "How PyTorch runs each operator beside: eager, frozen, straightforward, or none.",
        "eager,frozen",
        metavar="NAMES",
    )
    layers: str = option(
        "CHANNELS@SIZE of ResNet-18's layers, such as 64@56,512@7.", "all", metavar="NAMES"
    )
    form_seconds: float | None = option(
        "How long PyTorch may take to build one form of one operator in one layer.",
        None,
        minimum=0,
        above=True,
        metavar="SECONDS",
    )
    measure_plans: int | None = option(
        "Also with the fastest of the N cheapest plans, found by measurement: compiled and eager.",
        None,
        minimum=1,
        maximum=1000,
        metavar="N",
    )
    threads: int = option("", 2, minimum=1, maximum=MOST_THREADS)
    rounds: int = options.rounds()
    picture: Path | None = option("A PNG or PDF.", None)
    seed: int = options.seed()
    as_json: bool = output.as_json()


@framework.command("bench kernels", _KernelArguments)
def command(given: _KernelArguments) -> int:
    """Time operators as compiled C++ and in PyTorch, in ResNet-18's four layers.

    Each kernel is checked against the reference interpreter first, and a time below the machine's
    roofline is an error. Speedups are over PyTorch's own 3x3 convolution in the same round. With
    the default forms this takes some minutes, most of them in torch.compile.
    """
    from syno.experiments.kernels import drawn_operators, forms_named, layers_named, zoo_operators

    wanted = forms_named(given.forms)
    chosen = zoo_operators(given.operators) | drawn_operators(given.drawn, given.seed)
    return _measure(
        chosen,
        given.batches,
        wanted,
        given,
        layers=layers_named(given.layers),
        form_seconds=given.form_seconds,
        measured_plans=given.measure_plans or 0,
    )


@dataclass(frozen=True, kw_only=True)
class _ZooArguments(Options):
    names: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[NAME]...")
    threads: int = option("", 2, minimum=1, maximum=MOST_THREADS)
    rounds: int = options.rounds(30)
    picture: Path | None = option("A PNG or PDF.", None)
    as_json: bool = output.as_json()


@framework.command("zoo bench", _ZooArguments)
def zoo_command(given: _ZooArguments) -> int:
    """Time the operators as compiled C++ in ResNet-18's four layers, at batch size 1.

    A sequence has as many positions as the layer's map. `syno bench kernels` has more options.
    """
    from syno.experiments.kernels import zoo_operators

    chosen = zoo_operators(",".join(given.names) or "zoo")
    return _measure(chosen, (1,), [], given)


def _measure(
    chosen: dict[str, Operator],
    batches: Sequence[int],
    wanted: Sequence[str],
    given: _KernelArguments | _ZooArguments,
    *,
    layers: Sequence[tuple[int, int]] | None = None,
    form_seconds: float | None = None,
    measured_plans: int = 0,
) -> int:
    from syno.experiments.kernels import described, measured
    from syno.measure.kernel_picture import draw

    def watched(batch: int, steps: int) -> AbstractContextManager[output.Move]:
        return output.progress(f"batch {batch}", steps, remaining=False)

    runs = measured(
        chosen,
        batches,
        layers=layers,
        threads=given.threads,
        rounds=given.rounds,
        torch_forms=wanted,
        form_seconds=form_seconds,
        measured_plans=measured_plans,
        watched=watched,
    )
    if given.picture is not None:
        draw(runs, given.picture)
    if given.as_json:
        output.print_json(described(runs, tuple(batches), given.rounds))
    else:
        for batch, run in zip(batches, runs, strict=True):
            _print(run, batch)
    return framework.OK


def _print(run: KernelRun, batch: int) -> None:
    from syno.experiments.tables import means_table, times_table

    screen = output.console()
    peak = run.roofline.flops / 1e9
    noisy = "   (noisy: something else used the machine)" if run.noisy else ""
    title = f"batch {batch}, {run.threads} threads, {peak:.0f} GFLOP/s at most"
    screen.print(output.heading(title, noisy))
    output.show(times_table(run))
    output.show(means_table(run, batch))
    for absent in run.missing:
        output.echo(f"{absent.layer} {absent.kernel}: not measured: {absent.reason}")
    for choice in run.chosen:
        if choice.number != 1:
            output.echo(
                f"{choice.layer} {choice.kernel}: plan {choice.number}, {choice.speedup:.2f}x"
            )
