"""`syno bench search`: search methods on a table of trained operators."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from syno._util.options import Options, option
from syno.cli import framework, output
from syno.cli.results import print_results

if TYPE_CHECKING:
    from syno_lab.benchmark import SearchResults


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    table: str = option(
        "Table of trained operators: a name in bench/tabular/ of the source tree, or a file.",
        "images",
        metavar="NAME",
    )
    method: tuple[str, ...] = option(
        "Search method: NAME, NAME:OPTION=VALUE,... or LABEL@NAME:...; can be repeated. `oracle` "
        "is the limit: the true order, with the noise of one training. `largest` takes the "
        "operators with the most MACs first.",
        ("uniform",),
        metavar="NAME",
    )
    seeds: int = option("Number of runs of each method.", 100, minimum=1)
    trials: int = option("Maximum number of trials of a run.", 400, minimum=1)
    workers: int = option("Number of simulated trials at the same time.", 1, minimum=1)
    jobs: int = option("Number of processes.", 1, minimum=1)
    objective: tuple[str, ...] = option(
        "Measure to optimize, as in `syno search`; can be repeated.",
        cast(tuple[str, ...], ()),
        metavar="MEASURE",
        unset="the accuracy or loss",
    )
    constraint: tuple[str, ...] = option(
        "Bound of a measure, such as `macs<=2e6`; can be repeated.",
        cast(tuple[str, ...], ()),
        metavar="BOUND",
        unset="none",
    )
    orbits: bool = option("Offer one operator of each orbit only.", False)
    picture: Path | None = option("File for a plot of the regret (PNG or PDF).", None)
    as_json: bool = output.as_json()


@framework.command("bench search", _Arguments)
def command(given: _Arguments) -> int:
    """Compare search methods on a table of trained operators, without training.

    A run proposes operators of the table and gets their stored results after the simulated time
    that each training took. The output is the number of trials until one of the best 1 % and of
    the best 0.2 % of the operators was evaluated, and the regret: the accuracy of the best operator
    minus that of the operator with the best result so far. Figures are the median and the quartiles
    over the seeds. For two methods and more, tests compare each pair: Wilcoxon's signed-rank test
    for runs with equal seeds, and the rank-sum test of Mann and Whitney. With several objectives or
    constraints, the figures are of the hypervolume of the best compromises instead: the number of
    trials until 90 % and 98 % of that of the whole table, and the share that is missing.
    """
    from syno_lab.benchmark import MethodSpec, compare_methods, load
    from syno_lab.benchmark.picture import save_regret

    table = load(given.table)
    if given.orbits:
        table = table.one_of_each_orbit()
    methods = [MethodSpec.parse(text) for text in given.method]
    with output.progress("runs", given.seeds * len(methods)) as move:
        found = compare_methods(
            table,
            methods,
            seeds=given.seeds,
            trials=given.trials,
            workers=given.workers,
            jobs=given.jobs,
            objectives=given.objective,
            constraints=given.constraint,
            progress=lambda done, total, what: move(done, what),
        )
    if given.as_json:
        print_results(found.described())
    else:
        _print(found)
    if given.picture is not None:
        save_regret(found, given.picture)
    return framework.OK


def _print(found: SearchResults) -> None:
    from syno_lab.benchmark.tables import comparisons_table, scores_table, summary

    for line in summary(found.table):
        output.echo(line)
    title = f"trials: {found.trials}, workers: {found.workers}, seeds: {found.seeds}"
    output.console().print(output.heading(title, "; median (quartiles)", before="\n"))
    output.show(scores_table(found))
    if found.comparisons:
        words = "; ratio of medians (p of Wilcoxon's test)"
        output.console().print(output.heading("compared", words, before="\n"))
        output.show(comparisons_table(found))
