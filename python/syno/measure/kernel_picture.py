"""Shares of the roofline as a picture: one dot a layer, one line an operator, best first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from syno.measure.kernels import CPP, TUNED, KernelRun, KernelTime
from syno.runs.figures import load_matplotlib, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = ("#1b6ca8", "#e08e45", "#4f9d69", "#a23b72")


def save_times(runs: Sequence[KernelRun], path: Path) -> None:
    """Writes the compiled kernels of the first run as PNG or PDF."""
    load_matplotlib()
    from matplotlib.figure import Figure

    # Tuned schedules would be a second line of nearly the same dots.
    own = [
        time
        for time in runs[0].times
        if time.roofline is not None and not time.kernel.endswith(f" {TUNED}")
    ]
    names = sorted({time.kernel for time in own}, key=lambda name: _mean(own, name))
    layers = list(dict.fromkeys(time.layer for time in own))
    figure = Figure(figsize=(8, 1.2 + 0.22 * len(names)))
    axes = figure.subplots()
    for layer, colour in zip(layers, _COLOURS, strict=False):
        shares = {t.kernel: 100 * (t.roofline or 0) for t in own if t.layer == layer}
        rows = [row for row, name in enumerate(names) if name in shares]
        axes.plot([shares[names[row]] for row in rows], rows, "o", color=colour, label=layer)
    # Rows in pairs may need fewer products than the definition has, and exceed the roofline.
    axes.set_xlim(0, 102 * max([1.0, *(time.roofline or 0.0 for time in own)]))
    axes.axvline(100, color="grey", linewidth=0.8)
    _decorate(axes, [name.removesuffix(f" {CPP}") for name in names], runs[0])
    figure.tight_layout()
    save_figure(figure, path)


def _decorate(axes: Axes, names: Sequence[str], run: KernelRun) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_xlabel(
        f"share of the roofline, % ({run.threads} threads, {run.roofline.flops / 1e9:.0f} GFLOP/s)"
    )
    axes.grid(axis="x", alpha=0.3)
    axes.legend(title="channels@size", loc="lower right", fontsize=8, title_fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _mean(times: Sequence[KernelTime], kernel: str) -> float:
    shares = [time.roofline or 0.0 for time in times if time.kernel == kernel]
    return sum(shares) / len(shares)
