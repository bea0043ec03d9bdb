"""The anytime picture of a comparison: the regret of each method after each trial."""

from __future__ import annotations

import math
from pathlib import Path

from syno.runs.figures import load_matplotlib, save_figure
from syno_lab.benchmark.experiment import SearchResults


def save_regret(found: SearchResults, path: Path) -> None:
    """Draw the median regret with its quartiles over the trials, as PNG or PDF.

    Raises:
        UserError: the file cannot be written.
    """
    load_matplotlib()
    from matplotlib.figure import Figure

    scale = found.regret_scale
    figure = Figure(figsize=(8, 5))
    axes = figure.subplots()
    counts = range(1, found.trials + 1)
    for each in found.scores:
        median, low, high = (
            [
                scale * getattr(q, name) if getattr(q, name) < math.inf else math.nan
                for q in each.anytime
            ]
            for name in ("median", "low", "high")
        )
        (line,) = axes.plot(counts, median, label=each.method, linewidth=1.6)
        axes.fill_between(counts, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set_xlabel(f"finished trials ({found.workers} at the same time)")
    unit = "percentage points" if found.objective.is_share else found.objective.unit
    label = f"regret of the validation {found.objective.name}, {unit}"
    axes.set_ylabel(label if found.problem.is_single else "missing share of the hypervolume, %")
    axes.set_title(
        f"{found.table.name}: median and quartiles of {found.seeds} seeds, "
        f"{len(found.table.keys):,} operators",
        fontsize=10,
    )
    axes.set_xlim(1, found.trials)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    save_figure(figure, path)
