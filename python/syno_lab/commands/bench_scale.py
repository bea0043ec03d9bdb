"""`syno bench scale`: a search with many workers, in simulated time."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util import numbers
from syno._util.options import Options, option
from syno._util.tables import Table
from syno.cli import framework, options, output
from syno.cli.results import print_results

if TYPE_CHECKING:
    from syno.store import Store
    from syno_lab.benchmark.scale import OperationTime, ScaleResults


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    workers: str = option(
        "Numbers of workers to simulate, up to 4096 each.", "1,16,64,256", metavar="NUMBERS"
    )
    trial_seconds: float = option(
        "Mean time of an evaluation in seconds.", 60.0, minimum=0, above=True
    )
    failures: float = option(
        "Share of the evaluations during which the worker is lost: half of these workers die, and "
        "half are suspended until another one has the lease.",
        0.0,
        minimum=0,
    )
    stragglers: float = option(
        "Share of the evaluations that take ten times as long.", 0.0, minimum=0
    )
    latency_ms: float = option(
        "Time for a message to the database and its answer, in milliseconds, added to what each "
        "call takes on this machine.",
        0.0,
        minimum=0,
    )
    method: str = option("Search method.", "uniform", metavar="NAME")
    store: str | None = option(
        "Store for the simulated studies, a file or an address of PostgreSQL.",
        None,
        metavar="STORE",
        unset="a temporary file",
    )
    picture: Path | None = option(
        "File for a plot of throughput and of what is busy (PNG or PDF).", None
    )
    seed: int = options.seed()
    as_json: bool = output.as_json()


@framework.command("bench scale", _Arguments)
def command(given: _Arguments) -> int:
    """Simulate a search with up to thousands of workers.

    Driver and workers do with the store what they do in a search: the driver proposes, and workers
    take leases, renew them, and store results. These calls are made for real, one after the other,
    and measured. Only the evaluations take simulated time. The output is the throughput, compared
    with workers that evaluate without a break; the results that were missing when a proposal was
    made; the share of the evaluations that was lost; and what limits the throughput.
    """
    from syno_lab.benchmark.scale import parse_workers, simulate_scale
    from syno_lab.benchmark.scale_picture import save_scale

    workers = parse_workers(given.workers)
    with _opened(given.store) as store, output.progress("answers", None) as move:
        found = simulate_scale(
            store,
            workers,
            trial_seconds=given.trial_seconds,
            failures=given.failures,
            stragglers=given.stragglers,
            latency_ms=given.latency_ms,
            method=given.method,
            seed=given.seed,
            progress=lambda done, total, what: move(done, f"of {total:,}: {what}"),
        )
    if given.as_json:
        print_results(found.described())
    else:
        _print(found)
    if given.picture is not None:
        save_scale(found, given.picture)
    return framework.OK


@contextlib.contextmanager
def _opened(address: str | None) -> Iterator[Store]:
    from syno.store import Store

    with contextlib.ExitStack() as stack:
        if address is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="syno-scale-"))
            address = str(Path(folder) / "scale.db")
        yield stack.enter_context(Store.open(address))


def _print(found: ScaleResults) -> None:
    load = found.load
    title = f"trials of {load.trial_seconds:g} s, store {found.store}, method {found.method}"
    output.console().print(output.heading(title))
    output.show(
        Table.of(
            found.results,
            ("workers>", lambda each: f"{each.workers:,}"),
            ("trials a second>", lambda each: f"{each.throughput:.3g}"),
            ("of ideal>", lambda each: numbers.percent(each.efficiency)),
            ("missing results>", lambda each: f"{each.missing:.1f}"),
            ("unread>", lambda each: f"{each.unread:.2f}"),
            ("wasted>", lambda each: numbers.percent(each.wasted)),
            ("lock held>", lambda each: numbers.percent(each.lock)),
            ("driver busy>", lambda each: numbers.percent(each.driver)),
            ("limited by~", lambda each: each.bottleneck),
        )
    )
    last = found.results[-1]
    words = f"; calls of the store with {last.workers:,} workers"
    output.console().print(output.heading("costs", words, before="\n"))
    output.show(operations_table(last.operations))


def operations_table(operations: tuple[OperationTime, ...]) -> Table:
    """One line for each kind of call."""
    return Table.of(
        operations,
        ("call", lambda each: each.name),
        ("calls>", lambda each: f"{each.count:,}"),
        ("mean ms>", lambda each: f"{each.mean_ms:.2f}"),
        ("99 % ms>", lambda each: f"{each.p99_ms:.2f}"),
        ("under the lock, ms>", lambda each: f"{each.locked_ms:.2f}"),
    )
