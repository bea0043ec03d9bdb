"""Fronts of accuracy and speed (the paper's Figure 6): of studies, and those that are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno.report.model import Baseline, OperatorRow, Report
from syno.report.pareto import front, latency, staircase
from syno.store.front import pareto_front
from syno_lab import published
from syno_lab.figures import style
from syno_lab.figures.drawing import Drawing, Row
from syno_lab.figures.sources import Sources

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 3
# Devices whose published times are drawn; the CSV file has all.
_DRAWN = ("ms_arm_cpu_inductor", "ms_a100_inductor")


def draw(sources: Sources) -> Drawing:
    """A panel for each study with latencies, and two of published networks, or these alone."""
    studies = [each for each in sources.studies if _points(each)]
    count = len(studies) + len(_DRAWN)
    columns = 2 if count == 4 else min(count, _COLUMNS)
    lines = -(-count // columns)
    figure = style.canvas(3.6 * columns, 3.3 * lines)
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    rows: list[Row] = []
    for axes, report in zip(panels, studies, strict=False):
        rows += _study(axes, report)
    for axes, platform in zip(
        panels[len(studies) :],
        [each for each in published.PLATFORMS if each.column in _DRAWN],
        strict=False,
    ):
        _published_panel(axes, platform)
    for axes in panels[count:]:
        axes.set_visible(False)
    for platform in published.PLATFORMS:
        rows += _published_rows(platform)
    return Drawing(figure, rows)


def _points(report: Report) -> list[OperatorRow]:
    """The operators with a latency, where the original has a result."""
    if report.quality(report.baseline) is None:
        return []
    return [each for each in report.trained if each.latency_ratio]


def _speedup(point: OperatorRow | Baseline) -> float:
    return 1 / (latency(point) or 1.0)


def _study(axes: Axes, report: Report) -> list[Row]:
    is_share = report.objective.is_share
    scale = 100 if is_share else 1

    def value(point: OperatorRow | Baseline) -> float:
        return scale * (report.quality(point) or 0.0)

    shown = _points(report)
    best = front(report, latency)
    others = [each for each in shown if each not in best]
    axes.plot(
        [_speedup(each) for each in others],
        [value(each) for each in others],
        "o",
        color=style.GREY,
        ms=3.5,
        label=f"operators ({len(shown)})",
    )
    slowest = max([1.0, *(latency(each) or 1.0 for each in shown)])
    xs, ys = staircase([(latency(each) or 1.0, value(each)) for each in best], slowest)
    axes.plot([1 / x for x in xs], ys, color=style.COLORS[0], lw=1.3)
    axes.plot(
        [_speedup(each) for each in best],
        [value(each) for each in best],
        "o",
        color=style.COLORS[0],
        ms=5.5,
        label="Pareto front",
    )
    base = report.baseline
    axes.plot([1.0], [value(base)], "D", color=style.COLORS[1], ms=6.5, label="original network")
    style.frame(axes, "both")
    axes.set_xlabel(f"speed-up of the network ({report.engine})", fontsize=9)
    unit = ", %" if is_share else ""
    axes.set_ylabel(f"{report.objective.name}{unit} (validation)", fontsize=9)
    axes.set_title(f"measured: {style.words(report.title)}", fontsize=9)
    axes.legend(frameon=False, fontsize=7)
    rows: list[Row] = []
    points: list[OperatorRow | Baseline] = [base, *shown]
    for point in points:
        name = point.short if isinstance(point, OperatorRow) else style.ORIGINAL
        rows.append(
            {
                "source": f"measured: study of {report.title}",
                "comparable": "yes",
                "platform": report.engine,
                "model": report.title,
                "operator": name,
                "objective": report.objective.name,
                "value": report.quality(point),
                "milliseconds": point.latency_ms,
                "speedup": _speedup(point),
                "macs": point.macs,
                "params": point.params,
                "on_front": point in best,
            }
        )
    return rows


def _published_panel(axes: Axes, platform: published.Platform) -> None:
    column = platform.column
    for number, original in enumerate(published.networks()):
        color = style.COLORS[number]
        known = [
            each
            for each in (original, *published.operators())
            if each.model == original.model and each.imagenet and column in each.milliseconds
        ]
        found = pareto_front(
            (each.milliseconds[column], each.imagenet or 0.0, place, each)
            for place, each in enumerate(known)
            if each.operator
        )
        axes.plot(
            [each.milliseconds[column] for each in found],
            [each.imagenet or 0.0 for each in found],
            "o-",
            color=color,
            ms=3.5,
            lw=1.1,
            label=style.words(original.model),
        )
        axes.plot(original.milliseconds[column], original.imagenet or 0.0, "D", color=color, ms=6)
    times = [
        each.milliseconds[column]
        for each in (*published.networks(), *published.operators())
        if column in each.milliseconds and each.imagenet
    ]
    axes.set_xscale("log")
    steps = (1, 2, 5) if max(times) < 30 * min(times) else (1, 3)
    ticks = [step * 10.0**power for power in range(-2, 5) for step in steps]
    ticks = [tick for tick in ticks if 0.8 * min(times) <= tick <= 1.25 * max(times)]
    axes.set_xticks(ticks, [fmt.short(tick) for tick in ticks])
    axes.minorticks_off()
    style.frame(axes, "both")
    axes.set_xlabel("milliseconds (diamond: original network)", fontsize=9)
    axes.set_ylabel("top-1 accuracy on ImageNet, %", fontsize=9)
    axes.set_title(f"published: {platform.label}", fontsize=9)
    axes.legend(frameon=False, fontsize=6.5)


def _published_rows(platform: published.Platform) -> list[Row]:
    originals = {each.model: each for each in published.networks()}
    rows: list[Row] = []
    for each in (*published.networks(), *published.operators()):
        if platform.column not in each.milliseconds:
            continue
        time = each.milliseconds[platform.column]
        rows.append(
            {
                "source": "published: the paper's artifact",
                "comparable": "other device" if platform.comparable else published.NOT_COMPARABLE,
                "platform": platform.label,
                "model": each.model,
                "operator": each.operator or style.ORIGINAL,
                "objective": "ImageNet top-1, %",
                "value": each.imagenet,
                "milliseconds": time,
                "speedup": originals[each.model].milliseconds[platform.column] / time,
                "macs": None if each.gmacs is None else round(each.gmacs * 1e9),
                "params": None if each.mparams is None else round(each.mparams * 1e6),
                "on_front": None,
            }
        )
    return rows
