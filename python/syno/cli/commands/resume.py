"""`syno resume`: a search goes on where it stopped."""

from __future__ import annotations

import click

from syno._util.checks import MOST_COUNTED
from syno.cli import framework, options, output


@framework.command(
    name="resume",
    examples=[
        ("the only study of a store", "syno resume runs.db"),
        ("an operator that crashed gets another chance", "syno resume runs.db --release 3fa2"),
        (
            "one of several, for more operators",
            "syno resume runs.db --study resnet-small-digits-1 --evaluations 50",
        ),
    ],
)
@click.argument("store")
@options.study_option
@click.option(
    "--evaluations",
    type=click.IntRange(1, MOST_COUNTED),
    help="New limit of the whole study: operators.",
)
@click.option("--seconds", type=float, help="New limit of the whole study: time.")
@click.option("--data-dir", metavar="DIR", help="Where the data is now, if it moved.")
@options.isolation_options
@options.max_attempts_option
@click.option(
    "--release",
    metavar="KEY",
    help="Lets the operator whose key begins so out of quarantine, to be evaluated next; or "
    "`baseline`, or `all`.",
)
@output.dry_run_option
@output.json_option
def command(
    store: str,
    study: str | None,
    evaluations: int | None,
    seconds: float | None,
    data_dir: str | None,
    isolate: bool | None,
    memory_limit: int | None,
    max_attempts: int | None,
    release: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Go on with a search that was stopped or killed: nothing finished is lost or done again.

    Everything it needs is in the store. The operator that was being evaluated is evaluated again.
    """
    from syno.cli import running
    from syno.cli.commands.search import finished

    if dry_run:
        return _describe(store, study, evaluations, as_json=as_json)
    summary = running.resume(
        {
            "store": store,
            "study": study,
            "evaluations": evaluations,
            "seconds": seconds,
            "data_dir": data_dir,
            "isolate": isolate,
            "memory_limit": memory_limit,
            "max_attempts": max_attempts,
            "release": release,
        }
    )
    return finished(summary, store, as_json=as_json)


def _describe(url: str, study: str | None, evaluations: int | None, *, as_json: bool) -> int:
    """Say what is left to do, and how long the operators took so far."""
    from syno.report import format as fmt
    from syno.store import Store

    with Store.open(url, read_only=True) as store:
        summary = store.summary(study)
    taken = [e.seconds for e in summary.evaluations if e.is_evaluated]
    # With a ladder, an operator takes the time of its higher rungs, too.
    done = sum(e.is_evaluated and e.rung_index == 0 for e in summary.evaluations)
    wanted = evaluations or int(summary.settings.get("evaluations", 0))
    left = max(0, wanted - done)
    seconds = left * sum(taken) / done if done else None
    if as_json:
        output.print_json(
            {"study": summary.study.name, "done": done, "left": left, "seconds": seconds}
        )
    else:
        cost = f", about {fmt.duration(seconds)}" if seconds else ""
        output.echo(f"{summary.study.name}: {done} operators done, {left} to go{cost}")
    return framework.OK
