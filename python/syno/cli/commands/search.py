"""`syno search`: from a network to operators that were trained, checked and timed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.checks import MOST_COUNTED
from syno._util.command_line import report_line
from syno._util.errors import UserError
from syno._util.options import Options, group, option, required
from syno.cli import framework, options, output
from syno.space.options import SpaceOptions
from syno.study.evaluate.options import IsolationOptions, TimingOptions, TrainOptions
from syno.study.settings import EVALUATIONS, METHOD

if TYPE_CHECKING:
    from syno.store import StudySummary
    from syno.study.fidelity.ladder import Ladder
    from syno.study.training.forecast import Forecast, LadderForecast
    from syno.train import Fidelity


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    """Arguments of `syno search`."""

    model: str | None = option(
        "`syno models` lists them.",
        None,
        unset="that of --preset paper/..., otherwise resnet-small, or gpt2-small for a text",
        metavar="NAME",
    )
    model_options: Mapping[str, int | str] = options.model_options()
    data: str = required("digits, cifar10, an image folder, or a text.", metavar="NAME")
    data_dir: str | None = options.data_dir()
    evaluations: int = option(
        "Operators to train; those rejected before training come on top.",
        EVALUATIONS,
        minimum=1,
        maximum=MOST_COUNTED,
    )
    seconds: float | None = option("Time limit; the evaluation that runs is finished.", None)
    store: str = options.store()
    name: str | None = option(
        "Name of the study.", None, unset="model, data, a number", metavar="NAME"
    )
    seed: int = options.seed()
    method: str = option("How operators are chosen: uniform, or diverse.", METHOD, metavar="NAME")
    named: options.NamedSpecification = group(
        options.NamedSpecification, without=("bindings", "limits")
    )
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()
    space: SpaceOptions = group(SpaceOptions)
    fidelity: options.FidelityArguments = group(options.FidelityArguments)
    train: TrainOptions = group(TrainOptions)
    isolation: IsolationOptions = group(IsolationOptions)
    timing: TimingOptions = group(TimingOptions)

    def trained(self) -> TrainOptions:
        """How networks are trained; a ladder says it in place of a fidelity."""
        if self.train.ladder is None:
            found = self.fidelity.found(self.data, self.data_dir)
            return dataclasses.replace(self.train, fidelity=found)
        changed = [f"--{name}" for name in self.fidelity.changes]
        given = changed + (["--fidelity"] if self.fidelity.fidelity else [])
        if given:
            raise UserError(
                f"{given[0]} cannot change a ladder: its rungs have fidelities of their own\n"
                "  what to do: a ladder of your own is a .toml file: --ladder mine.toml"
            )
        return self.train


@framework.command("search", Arguments)
def command(given: Arguments) -> int:
    """Find operators for a network: compose them, train the network with each, time it, store it.

    Everything is in the store as soon as it is known: a search that is stopped in any way goes on
    with `syno resume`. Bindings come from the layers of the network. Without --preset or shapes,
    the operators are sought in a setting for small images.
    """
    from syno.cli.watch import Watch
    from syno.study.fidelity.ladder import chosen
    from syno.study.search import search
    from syno.study.specifications import usual_model
    from syno.study.training.forecast import forecast

    net = given.model or usual_model(given.named.preset, given.data, given.data_dir)
    train, wanted = given.trained(), given.named.specification()
    if train.ladder is not None:
        _check_evaluations(chosen(train.ladder, train.eta), given.evaluations)
    if given.dry_run:
        found = forecast(
            net,
            given.data,
            data_dir=given.data_dir,
            model_options=given.model_options,
            evaluations=given.evaluations,
            seed=given.seed,
            train=train,
            threads=given.timing.threads,
        )
        _describe(found, given.store, as_json=given.as_json)
        return framework.OK
    with Watch() as watch:
        summary = search(
            net,
            given.data,
            data_dir=given.data_dir,
            model_options=given.model_options,
            specification=given.named.preset or wanted,
            evaluations=given.evaluations,
            seconds=given.seconds,
            seed=given.seed,
            method=given.method,
            store=given.store,
            name=given.name,
            space=given.space,
            train=train,
            timing=given.timing,
            isolation=given.isolation,
            observer=watch,
        )
    return finished(summary, given.store, as_json=given.as_json)


def _check_evaluations(ladder: Ladder, evaluations: int) -> None:
    """Say when no operator can come to the top."""
    least = ladder.eta ** (len(ladder.rungs) - 1)
    if evaluations < least:
        output.say(
            f"of {evaluations} operators none may reach the top of ladder '{ladder.name}': with "
            f"{len(ladder.rungs)} rungs and eta {ladder.eta}, that takes {least}"
        )


def finished(summary: StudySummary, store: str, *, as_json: bool) -> int:
    """Print what a search found and what can be done with it; 1 when it trained nothing."""
    from syno.cli.commands import status
    from syno.store.overview import study_json

    if as_json:
        output.print_json(study_json(summary, operators=True))
    else:
        status.print_studies([summary])
        status.print_rungs(summary)
        status.print_operators(summary, limit=10)
        status.print_quarantine(summary)
        output.say(f"next: {report_line(store, summary.study.name)}")
    return framework.OK if summary.trained else framework.NEGATIVE


def _describe(found: Forecast | LadderForecast, store: str, *, as_json: bool) -> None:
    """Print what a search would do, its layers and its cost, from a short probe of training."""
    from syno.study.training.forecast import LadderForecast

    if as_json:
        output.print_json(found.as_json() | {"store": store})
        return
    screen = output.console()
    output.paragraph("Layers", str(found.layers))
    screen.print()
    if isinstance(found, LadderForecast):
        cost = _print_rungs(found)
    else:
        output.paragraph("Fidelity", amounts(found.fidelity))
        cost = training_cost(found.trainings, found.seconds_each)
    screen.print()
    output.paragraph("Cost", f"{cost}\n")
    screen.print(f"Nothing was written; the results would go to {store}")


def training_cost(count: int, seconds: float | None) -> str:
    """The cost of some trainings, by that of the original network."""
    if seconds is None:
        return "unknown: the probe did not train"
    return (
        f"{count} trainings of about {fmt.duration(seconds)} each, by a few steps of the original "
        f"network: {fmt.duration(count * seconds)}; operators that lower badly take longer"
    )


def _print_rungs(found: LadderForecast) -> str:
    screen = output.console()
    ladder = found.ladder
    screen.print(
        output.heading("Rungs", f" of ladder {ladder.name}: the best 1/{ladder.eta} go on")
    )
    for each in found.rungs:
        rung, seconds = each.rung, each.seconds_each
        width = "" if rung.width == 1 else f", width {rung.width:g} of the network's"
        how = ", from the checkpoint of the rung below" if each.continues else ""
        cost = "unknown: the probe did not train" if seconds is None else fmt.duration(seconds)
        operators = f"about {each.operators} operators and the original, {cost} each{how}"
        text = f"{amounts(rung.fidelity)}{width}\n  {operators}"
        screen.print(output.indented(text, 2), soft_wrap=True)
    cost = "unknown" if found.seconds is None else f"about {fmt.duration(found.seconds)}"
    return f"{cost}; operators that lower badly take longer"


def amounts(fidelity: Fidelity) -> str:
    """The fidelity in a line: what it has, and by which recipe."""
    own = {name: value for name, value in fidelity.to_json().items() if name != "recipe"}
    parts = [f"{name} {value}" for name, value in own.items() if value is not None]
    recipe = fidelity.recipe
    return ", ".join([*parts, f"batch {recipe.batch}", f"recipe {recipe.name} {recipe.version}"])
