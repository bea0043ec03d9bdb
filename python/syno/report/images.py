"""PNG plots of the front and of the progress, for papers and slides."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno._util.printable import printable
from syno.report.charts import bests, faster
from syno.report.model import Report
from syno.report.pareto import Cost, front_plot, latency, macs
from syno.runs.figures import load_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which is suitable for color blindness.
_FRONT = "#0072b2"
_OTHER = "#8b95a1"
_BASELINE = "#d55e00"
_DPI = 160


def save_front(report: Report, path: Path) -> None:
    """Write accuracy or loss against latency and against MACs, side by side, to `path` (PNG)."""
    front_figure(report).savefig(path, dpi=_DPI)


def front_figure(report: Report) -> Figure:
    """Draw accuracy or loss against latency and against MACs, side by side."""
    load_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    by_latency, by_macs = figure.subplots(1, 2)
    _draw_front(by_latency, report, latency, at=faster)
    by_latency.set_xlabel(
        f"speed-up of the network over the baseline\n({report.engine}, batch size 1)"
    )
    _draw_front(by_macs, report, macs)
    by_macs.set_xlabel("MACs of the replaced layers")
    _head(figure, report.title)
    return figure


def save_progress(report: Report, path: Path) -> None:
    """Write the best accuracy or loss so far to `path` (PNG), with several objectives beside the
    hypervolume."""
    load_matplotlib()
    from matplotlib.figure import Figure

    volumes = [math.nan if value is None else value for value in report.volumes]
    figure = Figure(figsize=(10 if volumes else 6.4, 4.2), layout="constrained")
    axes, *beside = figure.subplots(1, 2 if volumes else 1, squeeze=False)[0]
    trained = sorted(report.trained, key=lambda c: c.number)
    numbers = [c.number for c in trained]
    best = bests(report, trained)
    if trained:
        values = [report.quality(c) or 0.0 for c in trained]
        axes.plot(numbers, values, "o", color=_OTHER, markersize=4, label="evaluation")
        axes.step(numbers, best, where="post", color=_FRONT, linewidth=2, label="best so far")
    base = report.quality(report.baseline)
    if base is not None:
        axes.axhline(base, color=_BASELINE, linestyle="--", label="baseline")
    axes.set_xlabel("proposal")
    _finish(axes, report)
    for area in beside:
        area.step(range(1, len(volumes) + 1), volumes, where="post", color=_FRONT, linewidth=2)
        area.set_xlabel("results")
        _frame(area, "hypervolume, in units of the baseline")
    _head(figure, report.title)
    figure.savefig(path, dpi=_DPI)


def _head(figure: Figure, title: str) -> None:
    """Set the title as plain text; Matplotlib would interpret text between dollar signs."""
    figure.suptitle(printable(title, line=True), fontsize=11, parse_math=False)


def _draw_front(
    axes: Axes,
    report: Report,
    cost: Cost,
    at: Callable[[float], float] = float,
) -> None:
    plot = front_plot(report, cost, at)
    if plot.shown:
        axes.plot(*plot.line, color=_FRONT, linewidth=1.5)
        for points, color, size, label in (
            (plot.others, _OTHER, 4, "others"),
            (plot.points, _FRONT, 6, "Pareto front"),
        ):
            xs = [at(cost(c) or 0.0) for c in points]
            ys = [report.quality(c) or 0.0 for c in points]
            axes.plot(xs, ys, "o", color=color, markersize=size, label=label)
    if plot.ticks is not None:
        axes.set_xscale("log")
        axes.set_xticks(plot.ticks, [fmt.short(tick) for tick in plot.ticks])
        axes.minorticks_off()
    base, base_cost = report.quality(report.baseline), cost(report.baseline)
    if base is not None and base_cost is not None:
        axes.plot([at(base_cost)], [base], "D", color=_BASELINE, markersize=8, label="baseline")
    _finish(axes, report)


def _finish(axes: Axes, report: Report) -> None:
    from matplotlib.ticker import PercentFormatter

    _frame(axes, report.objective.axis)
    if report.objective.is_share:
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))
    if axes.has_data():
        axes.legend(frameon=False, fontsize=9)


def _frame(axes: Axes, label: str) -> None:
    axes.set_ylabel(label)
    axes.grid(color="#e3e7ec", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
