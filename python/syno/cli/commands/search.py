"""`syno search`: search for operators for a network."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util.command_line import report_line
from syno._util.errors import UserError
from syno._util.options import Options, group
from syno.cli import framework, options, output
from syno.options import FidelityOptions, TrainOptions
from syno.space.specification_options import NamedSpecification
from syno.study_options import StudyOptions

if TYPE_CHECKING:
    from syno.store import StudySummary
    from syno.study.fidelity.ladder import Ladder
    from syno.study.training.forecast import Forecast, LadderForecast


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    model: str | None = options.model(
        None, "that of --preset paper/..., otherwise resnet-small, or gpt2-small for text"
    )
    weights: str | None = options.weights()
    data: str = options.data()
    named: NamedSpecification = group(
        NamedSpecification, without=("bindings", "symmetry", "limits")
    )
    fidelity: FidelityOptions = group(FidelityOptions)
    study: StudyOptions = group(StudyOptions)
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()

    def _trained(self) -> TrainOptions:
        """Return how networks are trained; a ladder replaces the fidelity."""
        train = self.study.train
        if train.ladder is None:
            from syno.study.evaluate.loading import chosen_fidelity

            found = chosen_fidelity(self.fidelity, self.data, self.study.data_dir)
            return dataclasses.replace(train, fidelity=found)
        changed = [f"--{name}" for name in self.fidelity.changes]
        given = changed + (["--fidelity"] if self.fidelity.fidelity else [])
        if given:
            raise UserError(
                f"{given[0]} cannot be used with a ladder: its rungs define the fidelities\n"
                "  what to do: write a custom ladder as a .toml file: --ladder mine.toml"
            )
        return train

    def completed(self) -> StudyOptions:
        """Return the options of the search, with the fidelity and the weights of the model."""
        model_options = options.with_weights(self.study.model_options, self.weights)
        return dataclasses.replace(self.study, model_options=model_options, train=self._trained())


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

    study, named = given.completed(), given.named
    store = str(study.store)
    net = given.model or usual_model(named.preset, given.data, study.data_dir)
    wanted = named.specification()
    if study.train.ladder is not None:
        ladder = resolve_ladder(study.train.ladder, study.train.eta)
        _check_evaluations(ladder, study.evaluations)
    if given.dry_run:
        found = forecast(net, given.data, study)
        _describe(found, store, as_json=given.as_json)
        return framework.OK
    with Watch(store) as watch:
        summary = search(
            net,
            given.data,
            specification=named.preset or wanted,
            coefficient=named.coefficient if named.preset else (),
            observer=watch,
            **study,
        )
    return finished(summary, store, as_json=given.as_json)


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
