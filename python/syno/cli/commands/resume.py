"""`syno resume`: resume a search that was stopped or killed."""

from __future__ import annotations

from dataclasses import dataclass

from syno._util import numbers as fmt
from syno._util.checks import MOST_COUNTED
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.operands.options import study as study_option
from syno.options import IsolationOptions, RayOptions


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    store: str = options.store()
    study: str | None = study_option()
    evaluations: int | None = option(
        "New limit of the study: the number of operators.",
        None,
        minimum=1,
        maximum=MOST_COUNTED,
        unset="unchanged",
    )
    seconds: float | None = option(
        "New limit of the study: the time in seconds.", None, unset="unchanged"
    )
    patience: int | None = option(
        "New limit of the study: the number of operators without progress.",
        None,
        minimum=1,
        metavar="N",
        unset="unchanged",
    )
    data_dir: str | None = option("New folder of the data, if it has moved.", None, metavar="DIR")
    release: str | None = option(
        "Remove the operator whose id starts with ID from quarantine, and evaluate it next; also "
        "`baseline` or `all`.",
        None,
        metavar="ID",
    )
    jobs: int | None = options.jobs()
    gpus: bool = options.gpus()
    predictor: str | None = option(
        "Predict latencies in this process, or its workers, instead of measuring them: a file of "
        "`syno bench latency --predictor`.",
        None,
        metavar="FILE",
        unset="as the search does",
    )
    dry_run: bool = output.dry_run()
    as_json: bool = output.as_json()
    isolation: IsolationOptions = group(IsolationOptions)
    cluster: RayOptions = group(RayOptions)


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
    with Watch(given.store) as watch:
        summary = resume(
            given.store,
            given.study,
            data_dir=given.data_dir,
            evaluations=given.evaluations,
            seconds=given.seconds,
            patience=given.patience,
            isolation=given.isolation,
            release=given.release,
            predictor=given.predictor,
            observer=watch,
            jobs=given.jobs,
            gpus=given.gpus,
            cluster=given.cluster,
        )
    return finished(summary, given.store, as_json=given.as_json)


def _describe(given: _Arguments) -> int:
    """Print the remaining number of operators and an estimate of the time."""
    from syno.store import Store
    from syno.store.overview import remaining

    with Store.open(given.store, read_only=True) as store:
        summary = store.summary(given.study)
    found = remaining(summary, given.evaluations)
    if given.as_json:
        output.print_json(found)
    else:
        cost = f", about {fmt.duration(found['seconds'])}" if found["seconds"] else ""
        output.echo(
            f"{found['study']}: {found['done']} operators completed, {found['left']} left{cost}"
        )
    return framework.OK
