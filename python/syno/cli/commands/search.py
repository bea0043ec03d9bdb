"""`syno search`: search for operators for a network."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util.checks import MOST_COUNTED
from syno._util.command_line import report_line
from syno._util.errors import UserError
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.options import (
    EVALUATIONS,
    METHOD,
    FidelityOptions,
    IsolationOptions,
    RayOptions,
    TimingOptions,
    TrainOptions,
)
from syno.space.options import SpaceOptions
from syno.space.specification_options import NamedSpecification

if TYPE_CHECKING:
    from syno.store import StudySummary
    from syno.study.fidelity.ladder import Ladder
    from syno.study.training.forecast import Forecast, LadderForecast


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    model: str | None = options.model(
        None, "that of --preset paper/..., otherwise resnet-small, or gpt2-small for text"
    )
    model_options: Mapping[str, int | str] = options.model_options()
    weights: str | None = options.weights()
    data: str = options.data()
    data_dir: str | None = options.data_dir()
    evaluations: int = option(
        "Number of operators to train; operators rejected before training do not count.",
        EVALUATIONS,
        minimum=1,
        maximum=MOST_COUNTED,
    )
    seconds: float | None = option(
        "Time limit in seconds; the running evaluation is completed.", None, unset="no limit"
    )
    store: str = options.store()
    name: str | None = option(
        "Name of the study.", None, unset="model, data and a number", metavar="NAME"
    )
    seed: int = options.seed()
    method: str = option(
        "How operators are chosen: uniform, diverse, local, evolution, surrogate, tree or graph, "
        "with options such as local:samples=20,restarts=0.2.",
        METHOD,
        metavar="NAME",
    )
    objective: tuple[str, ...] = option(
        "Measure to minimize or maximize: accuracy (or loss), latency_ratio, latency_ms, macs, "
        "params or memory, with :min or :max for another direction than the usual one; can be "
        "repeated. Default: the accuracy, the loss of text.",
        (),
        metavar="MEASURE",
    )
    constraint: tuple[str, ...] = option(
        "Bound of a measure, such as 'latency_ratio<=0.8'; can be repeated.",
        (),
        metavar="BOUND",
    )
    retrain: int = option(
        "Train an operator that looks best N more times with other seeds; the mean counts.",
        0,
        minimum=0,
        metavar="N",
    )
    patience: int | None = option(
        "Stop after N operators without progress of the best result, or of the hypervolume of "
        "several objectives.",
        None,
        minimum=1,
        metavar="N",
        unset="no limit",
    )
    warm_start: str | None = option(
        "Study whose results `--method surrogate` starts from, or a file of them.",
        None,
        metavar="STORE:STUDY",
        unset="none",
    )
    jobs: int | None = options.jobs()
    gpus: bool = options.gpus()
    needs: tuple[str, ...] = option(
        "Tag that workers must have (`syno worker --tags`), such as the name of a device; can be "
        "repeated.",
        (),
        metavar="TAG",
    )
    named: NamedSpecification = group(
        NamedSpecification, without=("bindings", "symmetry", "limits")
    )
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()
    space: SpaceOptions = group(SpaceOptions)
    fidelity: FidelityOptions = group(FidelityOptions)
    train: TrainOptions = group(TrainOptions)
    isolation: IsolationOptions = group(IsolationOptions)
    timing: TimingOptions = group(TimingOptions)
    cluster: RayOptions = group(RayOptions)

    def trained(self) -> TrainOptions:
        """Return how networks are trained; a ladder replaces the fidelity."""
        if self.train.ladder is None:
            from syno.study.evaluate.loading import chosen_fidelity

            found = chosen_fidelity(self.fidelity, self.data, self.data_dir)
            return dataclasses.replace(self.train, fidelity=found)
        changed = [f"--{name}" for name in self.fidelity.changes]
        given = changed + (["--fidelity"] if self.fidelity.fidelity else [])
        if given:
            raise UserError(
                f"{given[0]} cannot be used with a ladder: its rungs define the fidelities\n"
                "  what to do: write a custom ladder as a .toml file: --ladder mine.toml"
            )
        return self.train


@framework.command("search", _Arguments)
def command(given: _Arguments) -> int:
    """Search for operators for a network.

    The command composes operators, trains the network with each of them, measures the latency, and
    stores every result immediately: `syno resume` resumes a search that was stopped in any way.
    The bindings are those of the layers of the network. Without --preset or shapes, the search
    uses a specification for small images.
    """
    from syno.cli.watch import Watch
    from syno.study.fidelity.ladder import resolve_ladder
    from syno.study.search import search
    from syno.study.specifications import usual_model
    from syno.study.training.forecast import forecast

    net = given.model or usual_model(given.named.preset, given.data, given.data_dir)
    train, wanted = given.trained(), given.named.specification()
    if train.ladder is not None:
        _check_evaluations(resolve_ladder(train.ladder, train.eta), given.evaluations)
    if given.dry_run:
        found = forecast(
            net,
            given.data,
            data_dir=given.data_dir,
            model_options=options.with_weights(given.model_options, given.weights),
            evaluations=given.evaluations,
            seed=given.seed,
            train=train,
            threads=given.timing.threads,
        )
        _describe(found, given.store, as_json=given.as_json)
        return framework.OK
    with Watch(given.store) as watch:
        summary = search(
            net,
            given.data,
            data_dir=given.data_dir,
            model_options=options.with_weights(given.model_options, given.weights),
            specification=given.named.preset or wanted,
            coefficient=given.named.coefficient if given.named.preset else (),
            evaluations=given.evaluations,
            seconds=given.seconds,
            seed=given.seed,
            method=given.method,
            warm_start=given.warm_start,
            objective=given.objective,
            constraint=given.constraint,
            retrain=given.retrain,
            patience=given.patience,
            store=given.store,
            name=given.name,
            space=given.space,
            train=train,
            timing=given.timing,
            isolation=given.isolation,
            observer=watch,
            jobs=given.jobs,
            gpus=given.gpus,
            needs=given.needs,
            cluster=given.cluster,
        )
    return finished(summary, given.store, as_json=given.as_json)


def _check_evaluations(ladder: Ladder, evaluations: int) -> None:
    """Warn if no operator can reach the highest rung."""
    least = ladder.eta ** (len(ladder.rungs) - 1)
    if evaluations < least:
        output.say(
            f"with {evaluations} operators, possibly none reaches the highest rung of ladder "
            f"'{ladder.name}': {len(ladder.rungs)} rungs with eta {ladder.eta} require {least}"
        )


def finished(summary: StudySummary, store: str, *, as_json: bool) -> int:
    """Print the results of a search and the next command; return 1 if nothing was trained."""
    from syno.cli.commands.status import print_study
    from syno.store.overview import study_json
    from syno.store.tables import studies_table

    if as_json:
        output.print_json(study_json(summary, operators=True))
    else:
        output.show(studies_table([summary]))
        print_study(summary, operators=True, limit=10)
        output.say(f"next: {report_line(store, summary.study.name)}")
    return framework.OK if summary.trained else framework.NEGATIVE


def _describe(found: Forecast | LadderForecast, store: str, *, as_json: bool) -> None:
    """Print what a search would do, its layers, and its cost estimated by a short training."""
    if as_json:
        output.print_json(found.as_json() | {"store": store})
        return
    output.layers(found.layers)
    output.echo("")
    for title, text in (found.trained, ("Cost", found.cost)):
        output.paragraph(title, f"{text}\n")
    output.echo(f"Nothing was written; the results would be stored in {store}")
