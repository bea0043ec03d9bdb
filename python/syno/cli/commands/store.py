"""`syno store`: check a store for damage, and recover a damaged store."""

from __future__ import annotations

from dataclasses import dataclass

from syno._util.command_line import command_line
from syno._util.options import Options, required
from syno.cli import framework, options, output


@framework.group("store")
def command() -> None:
    """Check a store for damage, and recover a damaged store."""


@dataclass(frozen=True, kw_only=True)
class _CheckArguments(Options):
    store: str = options.store()
    as_json: bool = output.as_json()


@framework.command("store check", _CheckArguments)
def check_command(given: _CheckArguments) -> int:
    """Check every row of a store, and list all damage.

    The command only reads the store. The exit code is 1 if there is damage. Every command that
    opens a store makes the same check, and refuses a damaged store.
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
            output.echo(f"can be recovered: {line}")
        output.say(f"next: {command_line('store', 'recover', store=given.store)} NEW")
    else:
        events = sum(counts.values())
        output.echo(f"{given.store} is intact: {len(counts)} studies, {events} events")
    return framework.NEGATIVE if found else framework.OK


@dataclass(frozen=True, kw_only=True)
class _RecoverArguments(Options):
    store: str = options.store()
    new: str = required("", names="NEW")
    as_json: bool = output.as_json()


@framework.command("store recover", _RecoverArguments)
def recover_command(given: _RecoverArguments) -> int:
    """Write the intact part of a damaged store to a new store.

    The command only reads the damaged store. NEW is a file that does not exist yet. For each study,
    the command keeps the longest intact beginning of its log, so that `syno resume` continues
    exactly as from that moment. It writes other intact rows to NEW.rest.json. The exit code is 1
    if no study can be recovered.
    """
    from syno.store import recover

    done = recover(given.store, given.new)
    if given.as_json:
        output.print_json(done.as_json())
        return framework.OK if done.studies else framework.NEGATIVE
    for saved in done.studies:
        output.echo(f"recovered {saved}")
    if done.rest is not None:
        output.echo(f"wrote {done.rest}: other intact rows, of which {done.rest_trials} are trials")
    if done.studies:
        output.say(f"next: {command_line('resume', store=done.store)}")
        return framework.OK
    output.say("no study could be recovered: none has intact settings and an intact specification")
    return framework.NEGATIVE
