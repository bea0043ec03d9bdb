"""`syno resume`: resume a search that was stopped or killed."""

from __future__ import annotations

from dataclasses import dataclass

from syno._util import numbers as fmt
from syno._util.options import Options, group
from syno.cli import framework, output
from syno.study_options import ResumeOptions


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    study: ResumeOptions = group(ResumeOptions)
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()


@framework.command("resume", _Arguments)
def command(given: _Arguments) -> int:
    """Resume a search that was stopped or killed.

    The store holds everything that the search needs. Completed trials are neither lost nor
    repeated; the trial that was running is repeated.
    """
    from syno.cli.commands.search import finished
    from syno.cli.watch import Watch
    from syno.study.search import resume

    if given.dry_run:
        return _describe(given)
    store = str(given.study.store)
    with Watch(store) as watch:
        summary = resume(**given.study, observer=watch)
    return finished(summary, store, as_json=given.as_json)


def _describe(given: _Arguments) -> int:
    """Print the remaining number of operators and an estimate of the time."""
    from syno.store import Store
    from syno.store.overview import remaining

    wanted = given.study
    with Store.open(str(wanted.store), read_only=True) as store:
        summary = store.summary(wanted.study)
    found = remaining(summary, wanted.evaluations)
    if given.as_json:
        output.print_json(found)
    else:
        cost = f", about {fmt.duration(found['seconds'])}" if found["seconds"] else ""
        output.echo(
            f"{found['study']}: {found['done']} operators completed, {found['left']} left{cost}"
        )
    return framework.OK
