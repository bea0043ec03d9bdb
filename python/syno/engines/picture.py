"""Comparisons of inference engines as a plot: a group of bars for each network."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from syno.engines.compare import EngineComparison, NetworkTime
from syno.runs.figures import load_matplotlib, save_figure

_OWN, _OTHER, _RIVAL = "#1b6ca8", "#b9c2cc", "#c0392b"


def save_engines(found: EngineComparison, path: Path, titles: Mapping[str, str]) -> None:
    """Write the median times with their interquartile ranges as PNG or PDF.

    Args:
        found: the times.
        path: the file.
        titles: what the picture calls networks, by name, if it is not their name.

    Raises:
        UserError: the file cannot be written.
    """
    load_matplotlib()
    from matplotlib.figure import Figure

    groups: dict[str, list[NetworkTime]] = {}
    for time in found.times:
        groups.setdefault(time.network, []).append(time)
    rows = len(found.times) + len(groups)  # a title above the bars of each network
    figure = Figure(figsize=(8, 1.1 + 0.26 * rows))
    axes = figure.subplots()
    places, names, row = [], [], rows
    for network, times in groups.items():
        row -= 1
        axes.annotate(
            titles.get(network, network),
            (0, row),
            (3, 0),
            textcoords="offset points",
            va="center",
            weight="bold",
        )
        for time in times:
            row -= 1
            places.append(row)
            names.append(f"{time.engine} ({time.precision})")
            axes.barh(
                row,
                time.median_ms,
                xerr=[[time.median_ms - time.low_ms], [time.high_ms - time.median_ms]],
                color=_OWN if time.own else _OTHER,
                ecolor="#444444",
                capsize=2,
            )
            axes.annotate(f" {time.over_rival:.2f}x", (time.high_ms, row), va="center", fontsize=8)
    first = found.times[0].network
    best = next(
        time.median_ms
        for time in found.times
        if time.engine == found.rival and time.network == first
    )
    axes.axvline(best, color=_RIVAL, linestyle="--", linewidth=1, zorder=3)
    axes.set_yticks(places, names, fontsize=8)
    axes.set_ylim(-0.7, rows - 0.4)
    axes.set_xlabel(
        f"milliseconds, {found.threads} threads; dashed line: {titles.get(first, first)} in "
        f"{found.rival}, and beside the bars the speed-up over it",
        fontsize=8,
    )
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    save_figure(figure, path)
