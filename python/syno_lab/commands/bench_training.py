"""`syno bench training`: training steps with compiled operators, compared with convolutions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util.options import Options, option
from syno.cli import framework, options, output
from syno.cli.results import print_results

if TYPE_CHECKING:
    from syno.measure.training_steps import TrainingSteps


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    model: str = options.model("resnet-small")
    model_options: Mapping[str, int | str] = options.model_options()
    size: int | None = options.image_size()
    operators: str = option(
        "Operators in the slots of the model, separated by commas, as for `syno train`; `none` for "
        "sampled operators only.",
        "operator-1",
        metavar="NAMES",
    )
    sampled: int = option(
        "Also measure N operators, sampled from the space of a search.",
        0,
        minimum=0,
        metavar="N",
    )
    binding: str | None = options.operator_sizes()
    batch: int = option("Batch size.", 64, minimum=1)
    threads: int = options.threads(1)
    rounds: int = option("Number of steps of each network.", 10, minimum=2)
    eager: bool = option("Also measure the operators in eager PyTorch.", True)
    seed: int = options.seed()
    as_json: bool = output.as_json()


@framework.command("bench training", _Arguments)
def command(given: _Arguments) -> int:
    """Time training steps of a model with compiled operators in its slots.

    A step is a forward and a backward pass. Each network is measured in turns with the original
    network in eager PyTorch, and its time is given as a multiple of that of the original: below 1
    is faster.
    """
    from syno.operators.specification import checked_binding
    from syno_lab.experiments.training_steps import described, training_steps

    names = [name.strip() for name in given.operators.split(",") if name.strip() != "none"]
    with output.progress("operators", len(names) + given.sampled, remaining=False) as move:
        steps = iter(range(len(names) + given.sampled))
        found = training_steps(
            given.model,
            dict(given.model_options),
            given.size,
            names,
            given.sampled,
            sizes={} if given.binding is None else checked_binding(given.binding),
            batch=given.batch,
            threads=given.threads,
            rounds=given.rounds,
            eager=given.eager,
            seed=given.seed,
            progress=lambda name: move(next(steps), name),
        )
    if given.as_json:
        print_results(described(found, given.model))
    else:
        _print(found, given.model)
    return framework.OK


def _print(found: TrainingSteps, model: str) -> None:
    from syno_lab.experiments.tables import training_steps_table

    shape = " x ".join(map(str, found.input))
    title = f"{model}, input {shape}, {found.threads} threads, {found.rounds} rounds"
    controls = {} if found.controls is None else {"": found.controls.text()}
    output.measured(title, noisy=found.noisy, controls=controls)
    output.show(training_steps_table(found))
    for what, mean in (
        ("compiled", found.geometric_mean),
        ("in eager PyTorch", found.eager_geometric_mean),
    ):
        if mean is not None:
            output.console().print(f"geometric mean {what}: {mean:.2f}x of the original's step")
