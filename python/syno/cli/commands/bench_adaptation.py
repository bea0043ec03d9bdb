"""`syno bench adaptation`: how well cheap scores predict adapted networks."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from syno._util import numbers
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.cli.commands import adapt
from syno.operands.options import study as study_option
from syno.options import AdaptOptions, FidelityOptions

if TYPE_CHECKING:
    from syno.experiments.adaptation import PredictorRanking


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    ops: tuple[str, ...] = option("", cast(tuple[str, ...], ()), names="[OP]...")
    model: str | None = options.model(None, "that of --study")
    model_options: Mapping[str, int | str] = options.model_options()
    weights: str | None = options.weights()
    data: str | None = option(
        "Data set: digits, cifar10, a folder of images, or text.",
        None,
        metavar="NAME",
        unset="that of --study",
    )
    data_dir: str | None = options.data_dir()
    assignments: int = option("Number of random assignments.", 40, minimum=4)
    store: str = options.store()
    study: str | None = study_option()
    name: str | None = option(
        "Name of the measurement; an existing one is continued.",
        None,
        metavar="NAME",
        unset="model, data and a number",
    )
    seed: int = options.seed()
    as_json: bool = output.as_json()
    fidelity: FidelityOptions = group(FidelityOptions)
    options: AdaptOptions = group(AdaptOptions)


@framework.command("bench adaptation", _Arguments)
def command(given: _Arguments) -> int:
    """Compare scores of candidates with the results of random assignments.

    Candidates for the slots of a trained network are gathered, fitted and scored as by `syno
    adapt`. Then candidates are drawn for each slot at random, the network is assembled and
    fine-tuned, by default for one epoch or 100 steps. The rank correlations of sums of fit errors
    and of one-slot losses, and of MACs, with the results say how well each of them chooses. With
    --name, the command continues a measurement that was stopped, also with more assignments.
    """
    from syno.adaptation.pipeline.source import checked_source
    from syno.experiments.adaptation import described, rank_predictors, short

    fidelity = adapt.fidelity_of(given.fidelity)
    source = checked_source(
        adapt.network_of(given.model, given.weights, given.store, given.study),
        given.data,
        model_options=options.with_weights(given.model_options, given.weights),
        data_dir=given.data_dir,
        fidelity=fidelity,
        seed=given.seed,
    )
    with output.progress("measuring", None, remaining=False) as move:
        found = rank_predictors(
            short(source) if fidelity is None else source,
            assignments=given.assignments,
            operators=given.ops,
            options=given.options,
            store=given.store,
            name=given.name,
            seed=given.seed,
            progress=adapt.watch(move),
        )
    if given.as_json:
        output.print_json(described(found))
    else:
        _print(found)
    return framework.OK


def _print(found: PredictorRanking) -> None:
    from syno.experiments.tables import predictors_table

    objective = found.objective
    values = [each.value for each in found.assignments]
    output.show(predictors_table(found.correlations, objective.name))
    output.say(
        f"{len(values)} networks of {found.study}: {objective.name} from "
        f"{objective.shown(min(values))} to {objective.shown(max(values))}, in the mean "
        f"{objective.shown(statistics.mean(values))}; the original has "
        f"{objective.shown(found.original)}; "
        f"{numbers.duration(sum(found.seconds.values()))} in all"
    )
