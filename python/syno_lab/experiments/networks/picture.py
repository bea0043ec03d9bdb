"""How many times as fast Syno is as the best rival, as a plot."""

from __future__ import annotations

from pathlib import Path

from syno.runs.figures import load_matplotlib, save_figure
from syno_lab.experiments.networks.sweep import NetworksTimes
from syno_lab.experiments.networks.tables import heading

_FASTER, _SLOWER = "#1b6ca8", "#c0392b"


def save_ratios(found: NetworksTimes, path: Path) -> None:
    """Write a panel for each setting with a bar for each network as PNG or PDF.

    Raises:
        UserError: the file cannot be written.
    """
    load_matplotlib()
    from matplotlib.figure import Figure

    settings = found.settings()
    most = max((len(found.networks(each)) for each in settings), default=0)
    figure = Figure(figsize=(8, len(settings) * (1.2 + 0.24 * most)))
    for number, setting in enumerate(settings, 1):
        axes = figure.add_subplot(len(settings), 1, number)
        ratios = {
            name: ratio
            for name in reversed(found.networks(setting))
            if (ratio := found.ratio(setting, name)) is not None
        }
        colours = [_FASTER if each >= 1 else _SLOWER for each in ratios.values()]
        places = range(len(ratios))
        axes.barh(places, list(ratios.values()), color=colours)
        for place, ratio in zip(places, ratios.values(), strict=True):
            axes.annotate(f" {ratio:.2f}x", (ratio, place), va="center", fontsize=8)
        axes.axvline(1, color="#444444", linestyle="--", linewidth=1)
        axes.set_yticks(places, list(ratios), fontsize=8)
        axes.set_title(heading(found, setting), fontsize=9, loc="left")
        axes.set_xlim(0, 1.15 * max([1.0, *ratios.values()]))
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.tight_layout()
    save_figure(figure, path)
