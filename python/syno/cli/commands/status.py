"""`syno status`: the studies of a store and their progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util.command_line import command_line
from syno._util.options import Options, option
from syno.cli import framework, options, output
from syno.operands.options import study as study_option

if TYPE_CHECKING:
    from syno.store import StudySummary


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    store: str = options.store()
    study: str | None = study_option()
    operators: bool = option("Also list the operators, the best first.", False)
    as_json: bool = output.as_json()


@framework.command("status", _Arguments)
def command(given: _Arguments) -> None:
    """Show the studies of a store and their progress. The command only reads the store."""
    from syno.store import Store
    from syno.store.overview import study_json
    from syno.store.records import plain
    from syno.store.tables import studies_table, workers_table

    with Store.open(given.store, read_only=True) as opened:
        records = opened.studies() if given.study is None else [opened.study(given.study)]
        summaries = [opened.summary(record) for record in records]
        name = opened.name
        workers = [worker for worker in opened.workers() if worker.is_alive]
    if given.as_json:
        studies = [study_json(summary, operators=given.operators) for summary in summaries]
        output.print_json({"store": name, "studies": studies, "workers": plain(workers)})
        return
    if not summaries:
        start = command_line("search", "--store", given.store)
        output.echo(f"{name} holds no study; `{start}` starts one")
        return
    output.show(studies_table(summaries))
    for summary in summaries:
        print_study(summary, operators=given.operators)
    if workers:
        output.console().print(output.heading("workers"))
        output.show(workers_table(workers))


def print_study(summary: StudySummary, *, operators: bool, limit: int | None = None) -> None:
    """Print the rungs of a study, its operators (the best first) and those in quarantine."""
    from syno.store.tables import (
        engine_lines,
        operators_table,
        progress_lines,
        quarantine_table,
        rungs_table,
    )

    screen = output.console()
    name = summary.study.name
    ladder = summary.settings.get("ladder")
    if summary.rungs and ladder:
        eta = ladder["eta"]
        title = output.heading("rungs", f" of {name}: the best 1/{eta} are promoted")
        screen.print(title, soft_wrap=True)
        output.show(rungs_table(summary))
    if operators:
        screen.print(output.heading(name))
        output.show(operators_table(summary, limit))
        for line in engine_lines(summary):
            output.echo(line)
    for line in progress_lines(summary):
        output.echo(line)
    if summary.quarantined:
        words = "not evaluated again; `syno resume --store STORE --release ID` releases one"
        title = output.heading("in quarantine", f" in {name}: {words}")
        screen.print(title, soft_wrap=True)
        output.show(quarantine_table(summary))
