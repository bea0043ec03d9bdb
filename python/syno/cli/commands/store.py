"""`syno store`: check a store for damage, and copy it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from syno._util.options import Options, option
from syno.cli import framework, options, output


@framework.group("store")
def command() -> None:
    """Check a store for damage, and copy it."""


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
    advice = ""
    counts: dict[str, int] = {}
    try:
        with Store.open(given.store, read_only=True) as opened:
            for study in opened.studies():
                counts[study.name] = len(opened.events(study))
    except DamagedError as error:
        found = error.found
        _, _, advice = str(error).partition("  what to do: ")
    if given.as_json:
        content = {"store": given.store, "whole": not found, "events": counts}
        output.print_json(content | {"findings": list(found)})
    elif found:
        output.echo(f"{given.store} is damaged:")
        for line in found:
            output.echo(f"  {line}")
        output.say(f"what to do: {advice}")
    else:
        events = sum(counts.values())
        output.echo(f"{given.store} is intact: {len(counts)} studies, {events} events")
    return framework.NEGATIVE if found else framework.OK


@dataclass(frozen=True, kw_only=True)
class _BackupArguments(Options):
    store: str = options.store()
    out: Path | None = option(
        "File to write.", None, names="-o/--out", unset="the store's name with .backup behind it"
    )
    as_json: bool = output.as_json()


@framework.command("store backup", _BackupArguments)
def backup_command(given: _BackupArguments) -> int:
    """Copy a store in a file, also while a search writes to it.

    The copy is checked row by row, and replaces an earlier one in one step. Searches of more than
    ten minutes write the same copy at intervals. To go back to it, move the store away, with the
    files -wal and -shm beside it, and copy the backup to its place.
    """
    from syno.store import Store, back_up

    with Store.open(given.store, create=False, read_only=True) as opened:
        written = back_up(opened, given.out)
    if given.as_json:
        output.print_json({"store": given.store, "backup": str(written)})
    else:
        output.echo(f"wrote {written}")
    return framework.OK
