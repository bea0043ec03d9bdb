"""An adaptation as a plot: the front, and what stands in which slot of each network."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from syno._util import numbers
from syno.adaptation.pipeline.front import axis_of, series
from syno.adaptation.pipeline.pool import ORIGINAL
from syno.adaptation.pipeline.results import AdaptationResults, AdaptedNetwork
from syno.runs.figures import load_matplotlib, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, which is suitable for color blindness.
_COLORS = {"front": "#0072b2", "rival": "#999999", "original": "#d55e00"}
_MARKER = {"front": "o", "original": "s"}
_MARKERS = "xv^<>P*D"  # of rivals
_LONGEST = 22  # characters of an operator's name
_DPI = 160


def save_picture(found: AdaptationResults, path: Path) -> Path:
    """Write the plot (PNG or PDF). UserError if the file cannot be written."""
    load_matplotlib()
    from matplotlib.figure import Figure

    filled = [each for each in found.networks if each.slots]
    if not filled:
        figure = Figure(figsize=(6.4, 4.4), layout="constrained")
        _front(figure.subplots(), found)
    else:
        width = 2.0 + 1.75 * len(filled)
        height = max(4.4, 1.4 + 0.27 * len(filled[0].slots))
        figure = Figure(figsize=(6.4 + width, height), layout="constrained")
        front, table = figure.subplots(1, 2, width_ratios=[6.4, width])
        _front(front, found)
        _slots(table, filled)
    save_figure(figure, path, _DPI)
    return path


def _front(axes: Axes, found: AdaptationResults) -> None:
    """The objective against the speed-up; bars are standard deviations over seeds."""
    markers = itertools.cycle(_MARKERS)
    scale = 100.0 if found.objective.is_share else 1.0
    for each in series(found):
        line, color = ("-" if each.role == "front" else ""), _COLORS[each.role]
        marker = _MARKER.get(each.role) or next(markers)
        spreads = [scale * (point.spread or 0.0) for point in each.points]
        axes.errorbar(
            [point.speedup for point in each.points],
            [scale * point.value for point in each.points],
            yerr=spreads if any(spreads) else None,
            label=each.name,
            markersize=6,
            capsize=2,
            marker=marker,
            linestyle=line,
            color=color,
        )
        for point in each.points if each.role == "front" else ():
            axes.annotate(
                point.name,
                (point.speedup, scale * point.value),
                xytext=(5, 5),
                textcoords="offset points",
                fontsize=8,
            )
    axes.set_xlabel("speed-up over the original network")
    axes.set_ylabel(axis_of(found) + (", %" if found.objective.is_share else ""))
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.margins(x=0.12, y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def _slots(axes: Axes, networks: Sequence[AdaptedNetwork]) -> None:
    """The operator in each slot, darker the less of the layer's latency it needs."""
    slots = networks[0].slots
    shares = [[row.after_ms / max(row.before_ms, 1e-9) for row in each.slots] for each in networks]
    columns = list(zip(*shares, strict=True))
    axes.imshow(columns, aspect="auto", cmap="Blues_r", vmin=-0.2, vmax=1.3)
    for column, network in enumerate(networks):
        for place, row in enumerate(network.slots):
            share = shares[column][place]
            text = row.operator if row.operator == ORIGINAL else f"{row.operator} {share:.2f}x"
            if len(row.operator) > _LONGEST:
                text = f"{row.operator[: _LONGEST - 1]}… {share:.2f}x"
            axes.annotate(
                text,
                (column, place),
                ha="center",
                va="center",
                fontsize=6.5,
                color="white" if share < 0.45 else "black",
            )
    axes.set_xticks(
        range(len(networks)),
        [f"{each.name}\n{numbers.speedup(each.row.ratio or 1.0)}" for each in networks],
        fontsize=8,
    )
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(slots)), [row.slot for row in slots], fontsize=7)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("latency of the operator over that of the layer", fontsize=8)
