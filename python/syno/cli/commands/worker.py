"""`syno worker`: evaluate what searches on a store propose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno._util import numbers
from syno._util.errors import UserError
from syno._util.options import Options, option
from syno.cli import framework, options, output
from syno.runs.termination import on_termination

if TYPE_CHECKING:
    from syno.store import Store


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    store: str = options.store()
    study: str | None = option(
        "Evaluate for this study only.", None, metavar="NAME", unset="all studies of the store"
    )
    jobs: int = option("Number of worker processes on this machine.", 1, minimum=1, metavar="N")
    gpus: bool = option(
        "Train on the GPUs of this machine: with several processes, each on one of them.", False
    )
    tags: tuple[str, ...] = option(
        "What this worker offers, such as the name of a device, for studies that need it "
        "(`syno search --needs`); can be repeated.",
        (),
        metavar="TAG",
    )
    idle: float | None = option(
        "End after this many seconds without anything to evaluate.",
        None,
        metavar="SECONDS",
        unset="wait until the worker is stopped",
    )
    data_dir: str | None = option(
        "Folder of the data on this machine.", None, metavar="DIR", unset="that of the study"
    )
    predictor: str | None = option(
        "Predict latencies instead of measuring them, with a file of "
        "`syno bench latency --predictor`.",
        None,
        metavar="FILE",
        unset="as the search does",
    )
    as_json: bool = output.as_json()


@framework.command("worker", _Arguments)
def command(given: _Arguments) -> int:
    """Evaluate what searches on a store propose.

    A worker takes proposals of searches that were started with `--jobs`, trains and measures them
    and stores the results. Any number of workers, on any machines that reach the store, may be
    started, stopped and killed at any time. SIGTERM and Ctrl-C give back what is being evaluated.
    """
    from syno.cli.trial_lines import TrialLines
    from syno.store import Store
    from syno.study.local_workers import count_gpus
    from syno.study.worker import work

    if given.idle is not None and given.idle < 0:
        raise UserError(f"idle (--idle) is a number of seconds, got {given.idle:g}")
    gpus = count_gpus() if given.gpus else 0
    with Store.open(given.store, create=False) as store:
        if given.jobs > 1:
            count = _several(given, store, gpus)
        else:
            count = work(
                store,
                tags=given.tags,
                study=given.study,
                idle_s=given.idle,
                data_dir=given.data_dir,
                device="cuda" if gpus else "cpu",
                predictor=given.predictor,
                observer=TrialLines(),
            )
    if given.as_json:
        output.print_json({"store": given.store, "evaluated": count})
    else:
        output.say(f"{numbers.counted(count, 'trial')} evaluated")
    return framework.OK


def _several(given: _Arguments, store: Store, gpus: int) -> int:
    """Run worker processes until they have nothing to do, or SIGTERM; return their trials."""
    from syno.study.local_workers import LocalWorkers

    def terminate() -> None:
        raise KeyboardInterrupt

    study = None if given.study is None else store.study(given.study).name
    with (
        on_termination(terminate),
        LocalWorkers(
            store,
            study,
            given.jobs,
            given.data_dir,
            tags=given.tags,
            idle_s=given.idle,
            gpus=gpus,
            predictor=given.predictor,
        ) as workers,
    ):
        workers.wait()
    return workers.evaluated
