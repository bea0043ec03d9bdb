"""`syno doctor`: check the installation, and print how to fix problems."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from syno._util.options import Options, option
from syno._util.threads import MOST_THREADS, usable_cores
from syno.cli import framework, options, output
from syno.installation import FAIL, OK, WARN, Check, check_installation


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    store: str = options.store()
    data_dir: str | None = options.data_dir()
    roofline: bool = option(
        "Measure the peak throughput and the bandwidths of the processor instead.", False
    )
    threads: int | None = option(
        "Number of threads of --roofline; default: 1 and all.",
        None,
        minimum=1,
        maximum=MOST_THREADS,
    )
    as_json: bool = output.as_json()


@framework.command("doctor", _Arguments)
def command(given: _Arguments) -> int:
    """Check the installation, and print how to fix problems.

    Each line starts with ok, warn or fail. The exit code is 1 if something is missing that every
    search needs.
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

    counts = [threads] if threads else sorted({1, usable_cores()})
    measured = [measure_roofline(count) for count in counts]
    if as_json:
        output.print_json([asdict(roofline) for roofline in measured])
        return framework.OK
    output.show(roofline_table(measured))
    output.console().print(
        "float32; one multiply-accumulate is two FLOP; bandwidths are of reads from a working set "
        "of the given size per thread"
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
