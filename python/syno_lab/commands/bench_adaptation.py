"""`syno bench adaptation`: how well cheap scores predict adapted networks."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util import numbers
from syno._util.options import group, option
from syno.cli import framework, output
from syno.cli.commands.adapt import NetworkArguments, watch
from syno.cli.results import print_results
from syno.study_options import AdaptationOptions

if TYPE_CHECKING:
    from syno_lab.experiments.adaptation import PredictorRanking

_USED = ("store", "name", "seed", "data_dir", "model_options", "options")


@dataclass(frozen=True, kw_only=True)
class _Arguments(NetworkArguments):
    assignments: int = option("Number of random assignments.", 40, minimum=4)
    adaptation: AdaptationOptions = group(AdaptationOptions, *_USED)
    as_json: bool = output.as_json()


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
    from syno_lab.experiments.adaptation import described, rank_predictors, short

    wanted = given.arguments()
    source = checked_source(wanted)
    with output.progress("measuring", None, remaining=False) as move:
        found = rank_predictors(
            short(source) if wanted.fidelity is None else source,
            dataclasses.replace(wanted, progress=watch(move)),
            given.assignments,
        )
    if given.as_json:
        print_results(described(found))
    else:
        _print(found)
    return framework.OK


def _print(found: PredictorRanking) -> None:
    from syno_lab.experiments.tables import predictors_table

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
