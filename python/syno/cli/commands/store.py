"""`syno store`: whether a store is whole, and saving what is intact in a damaged one."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from syno._util.options import Options, required
from syno.cli import framework, output


@framework.group("store")
def command() -> None:
    """Check whether a store is whole, and save what is intact in a damaged one."""


@dataclass(frozen=True, kw_only=True)
class _CheckArguments(Options):
    store: str = required("", names="STORE")
    as_json: bool = output.as_json()


@framework.command("store check", _CheckArguments)
def check_command(given: _CheckArguments) -> int:
    """Compare every row of a store with what was written, and list what is damaged.

    The exit code is 1 when there is damage. The store is only read. Each command that opens a store
    does the same, and refuses a damaged one.
    """
    from syno.store import DamagedError, Store

    found: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()
    counts: dict[str, int] = {}
    try:
        with Store.open(given.store, read_only=True) as opened:
            for study in opened.studies():
                counts[study.name] = len(opened.events(study))
    except DamagedError as error:
        found, saved = error.found, error.saved
    if given.as_json:
        content = {"store": given.store, "whole": not found, "events": counts}
        output.print_json(content | {"findings": list(found), "can_be_saved": list(saved)})
    elif found:
        output.echo(f"{given.store} is damaged:")
        for line in found:
            output.echo(f"  {line}")
        for line in saved:
            output.echo(f"can be saved: {line}")
        output.say(f"next: syno store recover {shlex.quote(given.store)} NEW")
    else:
        events = sum(counts.values())
        output.echo(f"{given.store} is whole: {len(counts)} studies, {events} events of logs")
    return framework.NEGATIVE if found else framework.OK


@dataclass(frozen=True, kw_only=True)
class _RecoverArguments(Options):
    store: str = required("", names="STORE")
    new: str = required("", names="NEW")
    as_json: bool = output.as_json()


@framework.command("store recover", _RecoverArguments)
def recover_command(given: _RecoverArguments) -> int:
    """Write what is intact in a damaged store into a new one. The damaged store is only read.

    NEW is a file that does not exist yet. Of each study the longest part is kept that is whole, so
    that `syno resume` goes on exactly as from that moment. Rows that are intact and belong to no
    such part are written to NEW.rest.json. The exit code is 1 when no study could be saved.
    """
    from syno.store import recover

    done = recover(given.store, given.new)
    if given.as_json:
        output.print_json(done.as_json())
        return framework.OK if done.studies else framework.NEGATIVE
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
