"""`syno train`: train given operators in a network, with several seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from syno._util.command_line import report_line
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.cli.results import print_results
from syno.options import (
    FidelityOptions,
    IsolationOptions,
    QuantizationOptions,
    TimingOptions,
    TrainOptions,
)

if TYPE_CHECKING:
    from syno.study.training.trainings import Trainings


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    ops: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[OP]...")
    baseline: bool = option("Also train the baseline network.", False)
    model: str | None = options.model(None, "resnet-small, or gpt2-small for text")
    model_options: Mapping[str, int | str] = options.model_options()
    weights: str | None = options.weights()
    data: str = options.data()
    data_dir: str | None = options.data_dir()
    recipe: str | None = option(
        "Recipe of the training: a name or a .toml file.",
        None,
        unset="that of the fidelity",
        metavar="NAME",
    )
    seeds: int = option("Number of seeds.", 1, minimum=1)
    seconds: float | None = option(
        "Train on text for this time, instead of a number of steps.",
        None,
        unset="the steps of the fidelity",
    )
    binding: str | None = options.operator_sizes()
    preset: str | None = option("Specification of the operators.", None, metavar="NAME")
    store: str = options.store()
    study: str | None = option(
        "Study of --store in which a key is searched.", None, metavar="NAME", unset="the latest"
    )
    name: str | None = option(
        "Name of the study; an existing study is continued.",
        None,
        metavar="NAME",
        unset="model, data and a number",
    )
    seed: int = options.seed()
    no_latency: bool = option("Do not measure latencies.", False)
    device: str = option("Device of the training: cpu or cuda.", "cpu", metavar="NAME")
    workers: int = option("Number of threads that load images in advance.", 0, minimum=0)
    checkpoints: str | None = option(
        "Folder for checkpoints; the same command resumes from them.",
        None,
        metavar="DIR",
    )
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()
    fidelity: FidelityOptions = group(FidelityOptions)
    train: TrainOptions = group(TrainOptions, "tokenizer", "deadline_s", "kernels")
    isolation: IsolationOptions = group(IsolationOptions, without=("max_attempts",))
    timing: TimingOptions = group(TimingOptions)
    quantization: QuantizationOptions = group(QuantizationOptions)

    def trainings(self) -> Trainings:
        """Return what to train; nothing is loaded yet."""
        from syno.operators.specification import checked_binding
        from syno.study.evaluate.loading import chosen_fidelity
        from syno.study.evaluate.quantization import Quantization
        from syno.study.training.train import usual_model
        from syno.study.training.trainings import Trainings
        from syno.train import recipe as known_recipe

        if self.recipe is not None:
            known_recipe(self.recipe)
        fidelity = chosen_fidelity(
            self.fidelity, self.data, self.data_dir, self.recipe, self.seconds
        )
        return Trainings(
            model=self.model or usual_model(fidelity),
            model_options=options.with_weights(self.model_options, self.weights),
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
            latency=not self.no_latency,
            quantization=Quantization.chosen(self.quantization),
        )


@framework.command("train", _Arguments)
def command(given: _Arguments) -> int:
    """Train networks with given operators, and store the results.

    OP is a name of the zoo, an operator as for every command, a folder with operators, or a file
    with an OP in each line. Accuracy and loss are measured on the validation split; only
    `syno report --final` reads the test split. With --baseline, the command also trains the
    baseline network with the same seeds and compares the operators with it seed by seed. A training
    that crashes, hangs or exceeds its memory becomes a row with its reason.
    """
    from syno.study.training.tables import forecast_sections, int8_shares, results_table
    from syno.study.training.train import TrainingNarration, follow, prepare, run
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
                found = trainings.forecast()
                if given.as_json:
                    output.print_json(found | {"store": given.store})
                else:
                    output.sections(forecast_sections(trainings, found))
                    place = given.store
                    output.echo(f"Nothing was written; the results would be stored in {place}")
            return framework.OK
        if not processes.is_first:
            follow(trainings, processes)
            return framework.OK
        with output.progress("training", len(trainings.jobs())) as move:
            watch = TrainingNarration(move, _resumes)
            trained = run(trainings, given.store, given.name, watch, processes)
    if trained.paused:
        output.say(f"paused; `{framework.this_command(name=trained.study)}` resumes it")
        return framework.PAUSED
    if given.as_json:
        rows = [row.to_json() for row in trained.rows]
        content = {"store": given.store, "study": trained.study}
        print_results(content | {"fidelity": trainings.fidelity.to_json(), "results": rows})
    else:
        fidelity, recipe = trainings.fidelity, trainings.fidelity.recipe
        rest = f"  fidelity {fidelity.name}, recipe {recipe.name} {recipe.version}"
        output.console().print(output.heading(trained.study, rest))
        output.show(results_table(trained.rows, trainings.measures[-1]))
        for line in int8_shares(trained.rows):
            output.console().print(line, soft_wrap=True)
        output.say(f"next: {report_line(given.store, trained.study)}")
    return framework.OK if trained.ok else framework.NEGATIVE


def _resumes(study: str) -> None:
    framework.resumable(framework.this_command(name=study))
