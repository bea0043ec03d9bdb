"""Comparisons of inference engines as a plot: a bar for each network in each engine."""

from __future__ import annotations

from pathlib import Path

from syno._util.figures import load_matplotlib
from syno.engines.compare import Comparison

_OWN, _OTHER = "#1b6ca8", "#b9c2cc"


def save_engines(found: Comparison, path: Path) -> None:
    """Write the median times with their interquartile ranges as PNG or PDF."""
    load_matplotlib()
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    times = found.times[::-1]
    figure, axes = plt.subplots(figsize=(8, 1.0 + 0.28 * len(times)))
    axes.barh(
        range(len(times)),
        [time.median_ms for time in times],
        xerr=[
            [time.median_ms - time.low_ms for time in times],
            [time.high_ms - time.median_ms for time in times],
        ],
        color=[_OWN if time.own else _OTHER for time in times],
        ecolor="#444444",
        capsize=2,
    )
    for row, time in enumerate(times):
        axes.annotate(
            f" {time.over_rival:.2f}x",
            (time.high_ms, row),
            va="center",
            fontsize=8,
        )
    axes.set_yticks(
        range(len(times)),
        [f"{time.network}, {time.engine} ({time.precision})" for time in times],
        fontsize=8,
    )
    axes.set_xlabel(
        f"milliseconds, {found.threads} threads; beside the bars: speed-up over the first network "
        f"in {found.rival}",
        fontsize=8,
    )
    axes.margins(x=0.12)
    axes.set_xlim(left=0)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)
