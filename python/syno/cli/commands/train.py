"""`syno train`: train given operators in a network, with several seeds."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from syno._util.command_line import report_line
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.cli.results import print_results
from syno.options import FidelityOptions, QuantizationOptions
from syno.study_options import TrainingsOptions

if TYPE_CHECKING:
    from syno.study.training.trainings import Trainings


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    ops: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[OP]...")
    model: str | None = options.model(None, "resnet-small, or gpt2-small for text")
    weights: str | None = options.weights()
    data: str = options.data()
    recipe: str | None = option(
        "Recipe of the training: a name or a .toml file.",
        None,
        unset="that of the fidelity",
        metavar="NAME",
    )
    seconds: float | None = option(
        "Train on text for this time, instead of a number of steps.",
        None,
        unset="the steps of the fidelity",
    )
    binding: str | None = options.operator_sizes()
    preset: str | None = option("Specification of the operators.", None, metavar="NAME")
    no_latency: bool = option("Do not measure latencies.", False)
    fidelity: FidelityOptions = group(FidelityOptions)
    trained: TrainingsOptions = group(TrainingsOptions)
    quantization: QuantizationOptions = group(QuantizationOptions)
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()

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
        given = self.trained
        model_options = options.with_weights(given.model_options, self.weights)
        fidelity = chosen_fidelity(
            self.fidelity, self.data, given.data_dir, self.recipe, self.seconds
        )
        return Trainings(
            options=dataclasses.replace(given, model_options=model_options),
            model=self.model or usual_model(fidelity),
            data=self.data,
            fidelity=fidelity,
            sizes={} if self.binding is None else checked_binding(self.binding),
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

    store = given.trained.store
    with joined(given.trained.device) as processes:
        trainings = given.trainings()
        prepare(trainings, given.ops, given.preset)
        if given.dry_run:
            if processes.is_first:
                found = trainings.forecast()
                if given.as_json:
                    output.print_json(found | {"store": store})
                else:
                    output.sections(forecast_sections(trainings, found))
                    output.echo(f"Nothing was written; the results would be stored in {store}")
            return framework.OK
        if not processes.is_first:
            follow(trainings, processes)
            return framework.OK
        with output.progress("training", len(trainings.jobs())) as move:
            watch = TrainingNarration(move, _resumes)
            trained = run(trainings, watch, processes)
    if trained.paused:
        output.say(f"paused; `{framework.this_command(name=trained.study)}` resumes it")
        return framework.PAUSED
    if given.as_json:
        rows = [row.to_json() for row in trained.rows]
        content = {"store": store, "study": trained.study}
        print_results(content | {"fidelity": trainings.fidelity.to_json(), "results": rows})
    else:
        fidelity, recipe = trainings.fidelity, trainings.fidelity.recipe
        rest = f"  fidelity {fidelity.name}, recipe {recipe.name} {recipe.version}"
        output.console().print(output.heading(trained.study, rest))
        output.show(results_table(trained.rows, trainings.measures[-1]))
        for line in int8_shares(trained.rows):
            output.console().print(line, soft_wrap=True)
        output.say(f"next: {report_line(store, trained.study)}")
    return framework.OK if trained.ok else framework.NEGATIVE


def _resumes(study: str) -> None:
    framework.resumable(framework.this_command(name=study))
