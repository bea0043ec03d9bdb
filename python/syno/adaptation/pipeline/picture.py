"""An adaptation as a plot: the front, and what stands in which slot of each network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from syno._util import numbers
from syno._util.figures import load_matplotlib, save_figure
from syno.adaptation.pipeline.pool import ORIGINAL
from syno.adaptation.pipeline.results import Adaptation, NetworkRow, spread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, which is suitable for color blindness.
_OURS, _OTHERS, _BEFORE = "#0072b2", "#999999", "#d55e00"
_MARKERS = "xv^<>P*D"  # of rivals
_LONGEST = 22  # characters of an operator's name
_DPI = 160


def save_picture(found: Adaptation, path: Path) -> Path:
    """Write the plot (PNG or PDF). UserError if the file cannot be written."""
    load_matplotlib()
    from matplotlib.figure import Figure

    slots = found.networks[0].slots
    width = 2.0 + 1.75 * len(found.networks)
    height = max(4.4, 1.4 + 0.27 * len(slots))
    figure = Figure(figsize=(6.4 + width, height), layout="constrained")
    front, table = figure.subplots(1, 2, width_ratios=[6.4, width])
    _front(front, found)
    _slots(table, found)
    save_figure(figure, path, _DPI)
    return path


def _front(axes: Axes, found: Adaptation) -> None:
    """The objective against the speed-up: on the test split if it was measured."""
    adapted = [each.row for each in found.networks]
    split = "test" if all(row.test is not None for row in adapted) else "validation"
    drawn = [row for row in found.rivals if _point(row, split) is not None]
    ways = list(dict.fromkeys(row.way for row in drawn))
    for number, way in enumerate(ways):
        marker = _MARKERS[number % len(_MARKERS)]
        rows = [row for row in drawn if row.way == way]
        _series(axes, found, rows, split, way, marker=marker, linestyle="", color=_OTHERS)
    _series(axes, found, adapted, split, "adapted", marker="o", linestyle="-", color=_OURS)
    _series(
        axes, found, [found.original], split, "original", marker="s", linestyle="", color=_BEFORE
    )
    for row in adapted:
        place, value = _point(row, split) or (0.0, 0.0)
        axes.annotate(
            row.name,
            (place, _scale(found) * value),
            xytext=(5, 5),
            textcoords="offset points",
            fontsize=8,
        )
    axes.set_xlabel("speed-up over the original network")
    unit = ", %" if found.objective.is_share else ""
    axes.set_ylabel(f"{found.objective.name} on the {split} split{unit}")
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    axes.margins(x=0.12, y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)


def _series(
    axes: Axes, found: Adaptation, rows: Sequence[NetworkRow], split: str, name: str, **style: Any
) -> None:
    """One group of networks; bars are standard deviations over seeds."""
    points = [(point, row) for row in rows if (point := _point(row, split)) is not None]
    if not points:
        return
    points.sort(key=lambda each: each[0])
    scale = _scale(found)
    spreads = [scale * (spread(_values(row, split)) or 0.0) for _, row in points]
    axes.errorbar(
        [place for (place, _), _ in points],
        [scale * value for (_, value), _ in points],
        yerr=spreads if any(spreads) else None,
        label=name,
        markersize=6,
        capsize=2,
        **style,
    )


def _scale(found: Adaptation) -> float:
    return 100.0 if found.objective.is_share else 1.0


def _point(row: NetworkRow, split: str) -> tuple[float, float] | None:
    """The speed-up and the objective; None where one of them is not known."""
    value = row.test if split == "test" else row.value
    return None if value is None or not row.ratio else (1.0 / row.ratio, value)


def _values(row: NetworkRow, split: str) -> tuple[float, ...]:
    return row.tests if split == "test" else row.values


def _slots(axes: Axes, found: Adaptation) -> None:
    """The operator in each slot, darker the less of the layer's latency it needs."""
    slots = found.networks[0].slots
    shares = [
        [row.after_ms / max(row.before_ms, 1e-9) for row in each.slots] for each in found.networks
    ]
    columns = list(zip(*shares, strict=True))
    axes.imshow(columns, aspect="auto", cmap="Blues_r", vmin=-0.2, vmax=1.3)
    for column, network in enumerate(found.networks):
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
        range(len(found.networks)),
        [f"{each.name}\n{numbers.speedup(each.row.ratio or 1.0)}" for each in found.networks],
        fontsize=8,
    )
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(slots)), [row.slot for row in slots], fontsize=7)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("latency of the operator over that of the layer", fontsize=8)
