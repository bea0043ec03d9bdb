"""`syno doctor`: is everything here that Syno needs, and what to do where it is not."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass

from syno._util.options import Options, option
from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output
from syno.installation import FAIL, OK, WARN, Check, check_installation


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    store: str = options.store()
    data_dir: str | None = options.data_dir()
    roofline: bool = option(
        "Measure what the processor can do at most instead: multiply-adds and bandwidths.", False
    )
    threads: int | None = option(
        "For --roofline; default: 1 and all.", None, minimum=1, maximum=MOST_THREADS
    )
    as_json: bool = output.as_json()


@framework.command("doctor", _Arguments)
def command(given: _Arguments) -> int:
    """Check this installation: each line says ok, warn or fail, and what to do.

    The exit code is 1 when something that every search needs is missing.
    """
    if given.roofline:
        return _roofline(given.threads, given.as_json)
    checks = check_installation(given.store, given.data_dir)
    if given.as_json:
        output.print_json([asdict(check) for check in checks])
    else:
        _print(checks)
    return framework.NEGATIVE if any(c.state == FAIL for c in checks) else framework.OK


def _roofline(threads: int | None, as_json: bool) -> int:
    from syno.measure.roofline import measure_roofline
    from syno.measure.tables import roofline_table

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    counts = [threads] if threads else sorted({1, usable or 1})
    measured = [measure_roofline(count) for count in counts]
    if as_json:
        output.print_json([asdict(roofline) for roofline in measured])
        return framework.OK
    output.show(roofline_table(measured))
    output.console().print(
        "float32; a multiply-add is two FLOP; reads of a working set of that size a thread"
    )
    return framework.OK


def _print(checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    colours = {OK: "green", WARN: "yellow", FAIL: "red"}
    grid = Table.grid(padding=(0, 2, 0, 0))
    for check in checks:
        state = Text(check.state, style=f"bold {colours[check.state]}")
        found = "\n".join(part for part in (check.found, check.advice) if part)
        grid.add_row(state, Text(check.name, style="bold"), Text(found))
    output.console().print(grid)
