"""`syno store`: whether a store is whole, and saving what is intact in a damaged one."""

from __future__ import annotations

import shlex
from typing import Any

import click

from syno.cli import framework, output


@framework.group(
    name="store",
    examples=[
        ("is it as it was written?", "syno store check runs.db"),
        ("the same for a script", "syno store check runs.db --json"),
        ("save what is intact into a new store", "syno store recover runs.db saved.db"),
    ],
)
def command() -> None:
    """Check whether a store is whole, and save what is intact in a damaged one."""


@command.command(
    name="check",
    cls=framework.Command,
    examples=(
        ("a file", "syno store check runs.db"),
        ("a server, for a script", "syno store check postgresql://user@host/database --json"),
    ),
)
@click.argument("store")
@output.json_option
def check_command(store: str, as_json: bool) -> int:
    """Compare every row of a store with what was written, and list what is damaged.

    The exit code is 1 when there is damage. The store is only read. Each command that opens a store
    does the same, and refuses a damaged one.
    """
    from syno.store import DamagedError, Store

    found: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()
    counts: dict[str, int] = {}
    try:
        with Store.open(store, read_only=True) as opened:
            for study in opened.studies():
                counts[study.name] = len(opened.events(study))
    except DamagedError as error:
        found, saved = error.found, error.saved
    if as_json:
        content: dict[str, Any] = {"store": store, "whole": not found, "events": counts}
        output.print_json(content | {"findings": list(found), "can_be_saved": list(saved)})
    elif found:
        output.echo(f"{store} is damaged:")
        for line in found:
            output.echo(f"  {line}")
        for line in saved:
            output.echo(f"can be saved: {line}")
        output.say(f"next: syno store recover {shlex.quote(store)} NEW")
    else:
        events = sum(counts.values())
        output.echo(f"{store} is whole: {len(counts)} studies, {events} events of logs")
    return framework.NEGATIVE if found else framework.OK


@command.command(
    name="recover",
    cls=framework.Command,
    examples=(
        ("a damaged file", "syno store recover runs.db saved.db"),
        ("a server's, for a script", "syno store recover postgresql://user@host/db s.db --json"),
    ),
)
@click.argument("store")
@click.argument("new")
@output.json_option
def recover_command(store: str, new: str, as_json: bool) -> int:
    """Write what is intact in a damaged store into a new one. The damaged store is only read.

    NEW is a file that does not exist yet. Of each study the longest part is kept that is whole, so
    that `syno resume` goes on exactly as from that moment. Rows that are intact and belong to no
    such part are written to NEW.rest.json. The exit code is 1 when no study could be saved.
    """
    from syno.store import recover

    done = recover(store, new)
    if as_json:
        studies = [
            {
                "name": saved.study["name"],
                "trials": saved.trials,
                "of_trials": saved.of_trials,
                "events": len(saved.events),
            }
            for saved in done.studies
        ]
        rest = None if done.rest is None else str(done.rest)
        output.print_json(
            {"store": done.store, "studies": studies, "rest": rest, "rest_trials": done.rest_trials}
        )
        return framework.OK if studies else framework.NEGATIVE
    for saved in done.studies:
        output.echo(f"saved {saved}")
    if done.rest is not None:
        output.echo(
            f"wrote {done.rest}: intact rows beside them, {done.rest_trials} trials of these"
        )
    if done.studies:
        output.say(f"next: syno resume {shlex.quote(done.store)}")
        return framework.OK
    output.say("no study could be saved: none has its settings and specification left")
    return framework.NEGATIVE
