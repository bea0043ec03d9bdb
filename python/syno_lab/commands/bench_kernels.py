"""`syno bench kernels`: operators as compiled code, compared with convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from syno._util.options import Options, option
from syno.cli import framework, options, output
from syno.cli.results import print_results

if TYPE_CHECKING:
    from syno import Operator
    from syno.measure.kernels import KernelRun

_DEFAULT = "conv2d,operator-1,operator-2"


@dataclass(frozen=True, kw_only=True)
class _KernelArguments(Options):
    operators: str = option(
        "Operators of the zoo by name, or `zoo` for all.", _DEFAULT, metavar="NAMES"
    )
    sampled: int = option(
        "Also time N operators of paper/resnet18, sampled from those with up to 8 steps.",
        0,
        minimum=0,
        former="--drawn",
        metavar="N",
    )
    batches: tuple[int, ...] = option(
        "Batch size; can be repeated.", (1, 8), minimum=1, names="--batch"
    )
    forms: str = option(
        "Forms in which PyTorch runs each operator: eager, frozen, straightforward, or none.",
        "eager,frozen",
        metavar="NAMES",
    )
    layers: str = option(
        "Layers of ResNet-18 as CHANNELS@SIZE, such as 64@56,512@7.", "all", metavar="NAMES"
    )
    form_seconds: float | None = option(
        "Time limit for PyTorch to compile one form of one operator in one layer.",
        None,
        minimum=0,
        above=True,
        metavar="SECONDS",
        unset="no limit",
    )
    measure_plans: int | None = option(
        "Also time the fastest of the N cheapest plans, compiled and eager.",
        None,
        minimum=1,
        maximum=1000,
        metavar="N",
        unset="off",
    )
    tune: int | None = option(
        "Also time each operator with the fastest of N schedules.",
        None,
        minimum=1,
        metavar="N",
        unset="off",
    )
    threads: int = options.threads(2)
    rounds: int = options.rounds()
    picture: Path | None = option("File for a plot (PNG or PDF).", None)
    seed: int = options.seed()
    as_json: bool = output.as_json()


@framework.command("bench kernels", _KernelArguments)
def command(given: _KernelArguments) -> int:
    """Time operators as compiled C++ and in PyTorch, in the layers of ResNet-18.

    Each kernel is first verified against the reference interpreter. A time below the roofline of
    the machine is an error. Speedups are relative to PyTorch's 3x3 convolution in the same round.
    With the default forms, the command takes several minutes, most of them in torch.compile.
    """
    from syno_lab.experiments.kernels import (
        forms_named,
        layers_named,
        sampled_operators,
        zoo_operators,
    )

    wanted = forms_named(given.forms)
    operators = zoo_operators(given.operators) | sampled_operators(given.sampled, given.seed)
    return _measure(
        operators,
        given.batches,
        wanted,
        given,
        layers=layers_named(given.layers),
        form_seconds=given.form_seconds,
        measured_plans=given.measure_plans or 0,
        tuning_trials=given.tune or 0,
    )


@dataclass(frozen=True, kw_only=True)
class _ZooArguments(Options):
    names: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[NAME]...")
    threads: int = options.threads(2)
    rounds: int = options.rounds(30)
    picture: Path | None = option("File for a plot (PNG or PDF).", None)
    as_json: bool = output.as_json()


@framework.command("zoo bench", _ZooArguments)
def zoo_command(given: _ZooArguments) -> int:
    """Time operators of the zoo as compiled C++ in the layers of ResNet-18, at batch size 1.

    A sequence has as many positions as the feature map of the layer. `syno bench kernels` has more
    options.
    """
    from syno_lab.experiments.kernels import zoo_operators

    operators = zoo_operators(",".join(given.names) or "zoo")
    return _measure(operators, (1,), [], given)


def _measure(
    operators: dict[str, Operator],
    batches: Sequence[int],
    wanted: Sequence[str],
    given: _KernelArguments | _ZooArguments,
    *,
    layers: Sequence[tuple[int, int]] | None = None,
    form_seconds: float | None = None,
    measured_plans: int = 0,
    tuning_trials: int = 0,
) -> int:
    from syno.measure.kernel_picture import save_times
    from syno_lab.experiments.kernels import described, measured

    def progress_of(batch: int, steps: int) -> AbstractContextManager[output.Move]:
        return output.progress(f"batch {batch}", steps, remaining=False)

    runs = measured(
        operators,
        batches,
        layers=layers,
        threads=given.threads,
        rounds=given.rounds,
        torch_forms=wanted,
        form_seconds=form_seconds,
        measured_plans=measured_plans,
        tuning_trials=tuning_trials,
        watched=progress_of,
    )
    if given.as_json:
        print_results(described(runs, tuple(batches), given.rounds))
    else:
        for batch, run in zip(batches, runs, strict=True):
            _print(run, batch)
    if given.picture is not None:
        save_times(runs, given.picture)
    return framework.OK


def _print(run: KernelRun, batch: int) -> None:
    from syno_lab.experiments.tables import means_table, times_table

    peak = run.roofline.flops / 1e9
    title = f"batch {batch}, {run.threads} threads, {peak:.0f} GFLOP/s peak"
    controls = {layer: each.text() for layer, each in run.controls.items()}
    output.measured(title, noisy=run.noisy, controls=controls)
    output.show(times_table(run))
    output.show(means_table(run, batch))
    for absent in run.missing:
        output.echo(f"{absent.layer} {absent.kernel}: not measured: {absent.reason}")
    gain = run.tuned_speedup()
    if gain is not None:
        output.echo(f"tuned over the rules' schedule: {gain:.3f}x (geometric mean)")
    for tuned in run.tuned:
        if tuned.tuning:
            output.echo(f"{tuned.layer} {tuned.kernel}: {tuned.speedup:.2f}x with {tuned.tuning}")
    for choice in run.chosen:
        if choice.number != 1:
            output.echo(
                f"{choice.layer} {choice.kernel}: plan {choice.number}, {choice.speedup:.2f}x"
            )
