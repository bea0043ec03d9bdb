"""`syno train`: chosen operators trained in a network, by a recipe, with several seeds."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from syno._util import numbers as fmt
from syno._util.command_line import report_line
from syno._util.errors import UserError
from syno._util.options import Options, group, option, required
from syno._util.tables import Table
from syno.cli import framework, options, output
from syno.study.evaluate.options import (
    FidelityOptions,
    IsolationOptions,
    TimingOptions,
    TrainOptions,
)

if TYPE_CHECKING:
    from syno.store import Outcome
    from syno.study.evaluate.quantization import Quantization
    from syno.study.training.train import TrainingObserver
    from syno.study.training.trainings import Job, Trainings

PAUSED = 128 + signal.SIGTERM


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    ops: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[OP]...")
    baseline: bool = option("Also train the network as it is.", False)
    model: str | None = option(
        "", None, unset="resnet-small, or gpt2-small for text", metavar="NAME"
    )
    model_options: Mapping[str, int | str] = options.model_options()
    data: str = required("digits, cifar10, a folder, a text.", metavar="NAME")
    data_dir: str | None = options.data_dir()
    recipe: str | None = option(
        "How to train: a recipe, or a .toml file.",
        None,
        unset="that of the fidelity",
        metavar="NAME",
    )
    seeds: int = option("How many trainings.", 1, minimum=1)
    seconds: float | None = option("Changes its seconds (text): equal time.", None)
    binding: str | None = options.own_sizes()
    preset: str | None = option(
        "The specification that operators are read under.", None, metavar="NAME"
    )
    store: str = options.store()
    study: str | None = option("Where a key is looked for, in --store.", None, metavar="NAME")
    name: str | None = option("Name of the study; one that is there goes on.", None, metavar="NAME")
    seed: int = options.seed()
    latency: bool = option(
        "Time each trained network on the CPU, in turns with the original. [on]", True
    )
    quantize: bool = option(
        "Also bring each trained network to INT8, and measure its accuracy and latency.", False
    )
    engine: str | None = option(
        "What of torch computes in INT8: fbgemm, x86, onednn, qnnpack.",
        None,
        unset="the first there is",
        metavar="NAME",
    )
    calibration_images: int = option(
        "Training images that --quantize takes the ranges of numbers from.", 256, minimum=1
    )
    device: str = option("cpu, or cuda.", "cpu", metavar="NAME")
    workers: int = option("Threads that read images ahead.", 0, minimum=0)
    checkpoints: str | None = option(
        "Keep the state of each training there; the same command goes on from it.",
        None,
        metavar="DIR",
    )
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()
    fidelity: FidelityOptions = group(FidelityOptions)
    train: TrainOptions = group(TrainOptions, "tokenizer", "deadline_s")
    isolation: IsolationOptions = group(IsolationOptions, without=("max_attempts",))
    timing: TimingOptions = group(TimingOptions)

    def trainings(self) -> Trainings:
        """What is to be trained; nothing is loaded yet."""
        from syno.operators.specification import checked_binding
        from syno.study.training.train import usual_model
        from syno.study.training.trainings import Trainings
        from syno.train import recipe as known_recipe

        if self.recipe is not None:
            known_recipe(self.recipe)
        fidelity = self.fidelity.found(self.data, self.data_dir, self.recipe, self.seconds)
        return Trainings(
            model=self.model or usual_model(fidelity),
            model_options=dict(self.model_options),
            data=self.data,
            data_dir=self.data_dir,
            fidelity=fidelity,
            seeds=tuple(range(self.seed, self.seed + self.seeds)),
            baseline=self.baseline,
            sizes={} if self.binding is None else checked_binding(self.binding),
            train=self.train,
            timing=self.timing,
            isolation=self.isolation,
            device=self.device,
            workers=self.workers,
            checkpoints=None if self.checkpoints is None else Path(self.checkpoints),
            latency=self.latency,
            quantization=self._quantization(),
        )

    def _quantization(self) -> Quantization | None:
        from syno.study.evaluate.quantization import Quantization

        if self.quantize:
            return Quantization.of(self.engine, self.calibration_images)
        if self.engine is not None:
            raise UserError(
                "an --engine is named, and nothing comes to INT8\n  expected: --quantize"
            )
        return None


@framework.command("train", _Arguments)
def command(given: _Arguments) -> int:
    """Train networks with chosen operators in them, and keep the results in a store.

    OP is a name of the zoo, an operator as every command takes it, a folder with operators, or a
    file with an OP in each line. Quality is measured on data held out of the training split; the
    test split is read by `syno report --final` alone. With --baseline the same seeds train the
    network as it is, and operators are compared with it seed by seed. An operator that crashes,
    hangs or eats memory is a row with its reason.
    """
    from syno.study.training.tables import int8_shares, results_table
    from syno.study.training.train import follow, prepare, run
    from syno.train import joined

    with joined(given.device) as processes:
        trainings = given.trainings()
        prepare(
            trainings,
            given.ops,
            specification=given.preset,
            store=given.store,
            study=given.study,
        )
        if given.dry_run:
            if processes.is_first:
                _describe(trainings, given.store, as_json=given.as_json)
            return framework.OK
        if not processes.is_first:
            follow(trainings, processes)
            return framework.OK
        with output.progress("training", len(trainings.jobs())) as move:
            found = run(trainings, given.store, given.name, _watch(move), processes)
    if found.paused:
        output.say("paused; the same command with this --name goes on: " + found.study)
        return PAUSED
    if given.as_json:
        rows = [row.to_json() for row in found.rows]
        content = {"store": given.store, "study": found.study}
        output.print_json(content | {"fidelity": trainings.fidelity.to_json(), "results": rows})
    else:
        fidelity, recipe = trainings.fidelity, trainings.fidelity.recipe
        rest = f"  fidelity {fidelity.name}, recipe {recipe.name} {recipe.version}"
        output.console().print(output.heading(found.study, rest))
        output.show(results_table(found.rows, "loss" if fidelity.task == "text" else "accuracy"))
        for line in int8_shares(found.rows):
            output.console().print(line, soft_wrap=True)
        output.say(f"next: {report_line(given.store, found.study)}")
    return framework.OK if found.ok else framework.NEGATIVE


def _watch(move: output.Move) -> TrainingObserver:
    """An observer that says on the bar what runs."""
    from syno.study.training.train import TrainingObserver

    class Watch(TrainingObserver):
        number, name = 0, ""

        def on_training(self, number: int, count: int, job: Job) -> None:
            self.number, self.name = number, f"{job.name}, seed {job.seed}"

        def on_trained(self, number: int, count: int, job: Job, outcome: Outcome | None) -> None:
            if outcome is None:
                words = "is in the store"
            else:
                share = outcome.accuracy
                words = outcome.status if share is None else f"{share:.2%}"
            move(number + 1, f"{job.name}, seed {job.seed}: {words}")

        def on_step(self, step: str) -> None:
            move(self.number, f"{self.name}: {step}")

        def on_epoch(self, epoch: int, epochs: int, loss: float) -> None:
            of = f" of {epochs}" if epochs else ""
            move(self.number, f"{self.name}: epoch {epoch}{of}, loss {loss:.3g}")

    return Watch()


def _describe(trainings: Trainings, store: str, *, as_json: bool) -> None:
    from syno.network.substitute import layer_report
    from syno.study.training.forecast import amounts, training_cost

    found = trainings.forecast()
    if as_json:
        output.print_json(found | {"store": store})
        return
    layers = layer_report(trainings.network(trainings.seeds[0]).template)
    output.paragraph("Layers", f"{layers}\n")
    output.paragraph("Fidelity", amounts(trainings.fidelity))
    costs = [{"name": "baseline", "key": None, **found["baseline"]}, *found["operators"]]
    output.show(
        Table.of(
            costs,
            ("operator", lambda each: each["name"]),
            ("key", lambda each: (each["key"] or "")[:8]),
            ("MACs>", lambda each: fmt.count(each["macs"])),
            ("params>", lambda each: fmt.count(each["params"])),
        )
    )
    output.paragraph("Cost", training_cost(found["trainings"], found["seconds_each"]) + "\n")
    output.echo(f"Nothing was written; the results would go to {store}")
