"""`syno doctor`: is everything here that Syno needs, and what to do where it is not."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from syno._util.threads import MOST_THREADS
from syno.cli import framework, options, output
from syno.installation import FAIL, OK, WARN, Check, check_installation


@framework.command(
    name="doctor",
    examples=[
        ("this installation", "syno doctor"),
        ("and the places of a search", "syno doctor --store runs.db --data-dir ~/data"),
        ("what the processor can do at most", "syno doctor --roofline"),
    ],
)
@click.option("--store", metavar="URL", default="sqlite:///runs.db", show_default=True)
@options.data_dir_option
@click.option(
    "--roofline",
    is_flag=True,
    help="Measure what the processor can do at most instead: multiply-adds and bandwidths.",
)
@click.option(
    "--threads", type=click.IntRange(1, MOST_THREADS), help="For --roofline; default: 1 and all."
)
@output.json_option
def command(
    store: str, data_dir: str | None, roofline: bool, threads: int | None, as_json: bool
) -> int:
    """Check this installation: each line says ok, warn or fail, and what to do.

    The exit code is 1 when something that every search needs is missing.
    """
    if roofline:
        return _roofline(threads, as_json)
    checks = check_installation(store, data_dir)
    if as_json:
        output.print_json([asdict(check) for check in checks])
    else:
        _print(checks)
    return framework.NEGATIVE if any(c.state == FAIL for c in checks) else framework.OK


def _roofline(threads: int | None, as_json: bool) -> int:
    from syno.measure.roofline import measure_roofline

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    counts = [threads] if threads else sorted({1, usable or 1})
    measured = [measure_roofline(count) for count in counts]
    if as_json:
        output.print_json([asdict(roofline) for roofline in measured])
        return framework.OK
    sets = [f"{level.bytes >> 10:,} KiB" for level in measured[0].levels]
    rows = [
        [
            str(m.threads),
            f"{m.flops / 1e9:,.0f}",
            *(f"{v.bytes_per_s / 1e9:,.0f}" for v in m.levels),
        ]
        for m in measured
    ]
    columns = [
        ("threads", "right"),
        ("GFLOP/s", "right"),
        *((f"GB/s in {s}", "right") for s in sets),
    ]
    screen = output.console()
    screen.print(output.table(columns, rows))
    screen.print(
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
