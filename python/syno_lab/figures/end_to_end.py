"""End-to-end speed-up (the paper's Figure 5): whole networks in their fastest engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno.engines.engine import FLOAT32, without
from syno_lab import published
from syno_lab.figures import style
from syno_lab.figures.drawing import Drawing, Row
from syno_lab.figures.sources import NetworkRun, Read, Sources

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from syno.engines.compare import NetworkTime

_WIDTH = 0.8


def draw(sources: Sources) -> Drawing:
    """Bars of networks with operators, in Syno's fastest engine and in the fastest other one.

    Without a run, the published bars alone.
    """
    runs = [read for read in sources.networks if len(read.content.networks()) > 1]
    if not runs:
        figure = style.canvas(9.5, 3.4)
        return Drawing(figure, _published(figure.subplots()))
    figure = style.canvas(9.5, 6.4)
    ours, theirs = figure.subplots(2, 1)
    rows = _measured(ours, runs) + _published(theirs)
    return Drawing(figure, rows)


def _fastest(run: NetworkRun, network: str, *, own: bool) -> NetworkTime | None:
    """The fastest float32 engine of a network."""
    found = [
        time
        for time in run.times
        if (time.network, time.own, time.precision) == (network, own, FLOAT32)
    ]
    return min(found, key=lambda time: time.median_ms, default=None)


def _measured(axes: Axes, runs: list[Read[NetworkRun]]) -> list[Row]:
    names = list(dict.fromkeys(name for read in runs for name in read.content.networks()))
    rows: list[Row] = []
    speedups = []
    for place, read in enumerate(runs):
        run = read.content
        width = _WIDTH / (2 * len(run.networks()))
        for number, network in enumerate(run.networks()):
            color = style.color_of(network, names)
            for half, own in enumerate((False, True)):
                time = _fastest(run, network, own=own)
                if time is None:
                    continue
                x = place - _WIDTH / 2 + (2 * number + half + 0.5) * width
                shade = color if own else style.lighter(color)
                axes.bar(x, time.over_rival, width, color=shade)
                style.label_bar(axes, x, time.over_rival, f"{time.over_rival:.2f}", 7)
                speedups.append(time.over_rival)
                rows.append(_row(read, time))
    for name in names:
        label = style.words(name)
        axes.bar(0, 0, color=style.color_of(name, names), label=f"{label}, Syno")
        shade = style.lighter(style.color_of(name, names))
        axes.bar(0, 0, color=shade, label=f"{label}, fastest other engine")
    style.speedup_axis(axes, speedups)
    style.frame(axes)
    axes.set_xticks(range(len(runs)), [_model(read.content) for read in runs], fontsize=9)
    axes.set_xlim(-0.55, len(runs) - 0.45)
    axes.set_ylabel("speed-up over the original\nin the fastest other engine", fontsize=9)
    devices = sorted({read.device for read in runs if read.device})
    threads = sorted({read.content.threads for read in runs})
    shown = ", ".join(fmt.counted(count, "thread") for count in threads)
    axes.set_title(f"measured: {', '.join(devices)}, {shown}, float32", fontsize=9)
    axes.legend(frameon=False, fontsize=7.5, loc="upper left", ncols=3)
    axes.set_ylim(top=axes.get_ylim()[1] * (1.35 if axes.get_yscale() == "linear" else 2.2))
    return rows


def _model(run: NetworkRun) -> str:
    batch = "" if run.input[0] == 1 else f"\nbatch {run.input[0]}"
    missing = f"\n{without(run.missing)}" if run.missing else ""
    return f"{style.words(run.model)}{batch}{' (noisy)' if run.noisy else ''}{missing}"


def _row(read: Read[NetworkRun], time: NetworkTime) -> Row:
    return {
        "source": read.source,
        "comparable": "yes",
        "device": read.device,
        "model": read.content.label,
        "operator": style.words(time.network),
        "engine": time.engine,
        "milliseconds": time.median_ms,
        "original_engine": read.content.rival,
        "missing_engines": " ".join(read.content.missing),
        "speedup": time.over_rival,
        "noisy": read.content.noisy,
    }


def _published(axes: Axes) -> list[Row]:
    rows: list[Row] = []
    colors = {"Arm CPU": style.COLORS[0], "mobile GPU": style.COLORS[2], "A100": style.COLORS[1]}
    count = len(published.PLATFORMS)
    width = _WIDTH / count
    models: list[str] = []
    values: list[float] = []
    for number, platform in enumerate(published.PLATFORMS):
        found = published.fastest(platform)
        models = [style.words(each.model) for each in found] + ["geometric mean"]
        speedups = [each.speedup for each in found]
        speedups.append(style.geometric_mean(speedups))
        values += speedups
        color = colors[platform.device]
        note = "" if platform.comparable else f" ({published.NOT_COMPARABLE})"
        axes.bar(
            [place - _WIDTH / 2 + (number + 0.5) * width for place in range(len(models))],
            speedups,
            width,
            color=color if platform.comparable else "white",
            edgecolor=color,
            linewidth=0.6,
            hatch=None if platform.comparable else style.HATCH,
            label=f"{platform.label}{note}",
        )
        rows += [
            {
                "source": "published: the paper's artifact",
                "comparable": "other device" if platform.comparable else published.NOT_COMPARABLE,
                "device": platform.device,
                "model": each.model,
                "operator": each.operator,
                "engine": platform.compiler,
                "milliseconds": each.milliseconds,
                "original_engine": platform.compiler,
                "missing_engines": None,
                "speedup": each.speedup,
                "noisy": None,
            }
            for each in found
        ]
    style.speedup_axis(axes, values)
    style.frame(axes)
    axes.set_xticks(range(len(models)), models, fontsize=9)
    axes.set_ylabel("speed-up over the original\nin the same compiler", fontsize=9)
    axes.set_title(
        "published by the artifact: fastest operator that loses at most one point on CIFAR-100",
        fontsize=9,
    )
    axes.legend(frameon=False, fontsize=7.5, ncols=3, loc="upper right")
    return rows
