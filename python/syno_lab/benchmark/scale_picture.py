"""The picture of a simulation: throughput over the number of workers, and what is busy."""

from __future__ import annotations

from pathlib import Path

from syno.runs.figures import load_matplotlib, save_figure
from syno_lab.benchmark.scale import ScaleResults


def save_scale(found: ScaleResults, path: Path) -> None:
    """Draw the throughput beside the ideal one, and the shares of the time, as PNG or PDF.

    Raises:
        UserError: the file cannot be written.
    """
    load_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4))
    rate, busy = figure.subplots(1, 2)
    results = sorted(found.results, key=lambda each: each.workers)
    workers = [each.workers for each in results]
    rate.plot(workers, [each.ideal for each in results], "--", color="gray", label="ideal")
    rate.plot(workers, [each.throughput for each in results], "o-", label="simulated")
    rate.set_xscale("log", base=2)
    rate.set_yscale("log")
    rate.set_ylabel("trials a second")
    busy.plot(workers, [100 * each.lock for each in results], "o-", label="lock of the study")
    busy.plot(workers, [100 * each.driver for each in results], "s-", label="driver")
    busy.plot(
        workers, [100 * each.efficiency for each in results], "^-", label="throughput / ideal"
    )
    busy.set_xscale("log", base=2)
    busy.set_ylim(0, 105)
    busy.set_ylabel("share in %")
    for axes in (rate, busy):
        axes.set_xlabel("workers")
        axes.grid(alpha=0.3)
        axes.legend()
    figure.suptitle(
        f"trials of {found.load.trial_seconds:g} s, {found.store}, "
        f"{1e3 * found.load.latency:g} ms of latency",
        fontsize=10,
    )
    figure.tight_layout()
    save_figure(figure, path)
