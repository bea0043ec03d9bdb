"""PNG plots of the experiments, with the figures of the paper."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from syno.runs.figures import load_matplotlib, save_figure
from syno_lab.experiments.ablation import PAPER, Ablation, Guided
from syno_lab.experiments.canonical import CanonicalRate
from syno_lab.experiments.projection import (
    OPERATOR,
    ORIGINAL,
    STEPS,
    TIME,
    ProjectionComparison,
    ProjectionRun,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from syno_lab.experiments.agreement import Agreement
    from syno_lab.experiments.ranking import RankingFile

# The palette of Okabe and Ito, which is suitable for color blindness.
_OURS = "#0072b2"
_PAPER = "#d55e00"
_DPI = 160
# The place of a rate of 0 on a logarithmic axis.
_FLOOR = 1e-4


def save_canonical_rate(result: CanonicalRate, path: Path) -> None:
    """Write the rate by number of primitives to `path` (PNG)."""
    save_figure(canonical_rate_figure(result), path, _DPI)


def canonical_rate_figure(result: CanonicalRate) -> Figure:
    """Draw the rate by number of primitives."""
    load_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    shown = [row for row in result.rows if row.samples]
    places = [row.primitives for row in shown]
    rates = [max(row.rate or 0.0, _FLOOR) for row in shown]
    low = [
        rate - min(rate, max(row.interval[0], _FLOOR))
        for rate, row in zip(rates, shown, strict=True)
    ]
    high = [max(0.0, row.interval[1] - rate) for rate, row in zip(rates, shown, strict=True)]
    axes.errorbar(
        places,
        rates,
        yerr=[low, high],
        fmt="o-",
        color=_OURS,
        capsize=3,
        label=f"ours: {result.canonical:,} of {result.samples:,} samples, "
        "with 95 % confidence intervals",
    )
    axes.plot(
        [row.primitives for row in result.rows],
        [max(row.paper, _FLOOR) for row in result.rows],
        "s--",
        color=_PAPER,
        label="paper, Table 2: 86 of 6,452 samples",
    )
    axes.set_yscale("log")
    axes.set_ylim(_FLOOR * 0.7, 1.6)
    ticks = [1.0, 0.1, 0.01, 0.001, _FLOOR]
    axes.set_yticks(ticks, ["1", "0.1", "0.01", "0.001", "0"])
    axes.minorticks_off()
    axes.set_xticks(
        [row.primitives for row in result.rows],
        [f"{row.label}\n({row.samples:,})" for row in result.rows],
    )
    axes.set_xlabel("primitives of a sample (number of our samples)")
    axes.set_ylabel("fraction that the rules keep")
    _finish(axes)
    figure.suptitle("Canonical fraction of complete graphs sampled without rules", fontsize=11)
    return figure


def save_ablation(result: Ablation, path: Path) -> None:
    """Write what trials find under each guide to `path` (PNG)."""
    save_figure(ablation_figure(result), path, _DPI)


def ablation_figure(result: Ablation) -> Figure:
    """Draw what trials find under each guide."""
    load_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 4.4), layout="constrained")
    met, distinct = figure.subplots(1, 2)
    for axes, value, heading in (
        (met, _met, "trials per million that found an operator"),
        (distinct, _distinct, "distinct operators per million trials"),
    ):
        _bars(axes, result, value)
        axes.set_title(heading, fontsize=10)
    figure.suptitle("Random trials with and without a distance", fontsize=11)
    return figure


def _met(guided: Guided) -> float:
    """Return trials with an operator; the paper's distinct operators are a lower bound."""
    met = guided.distinct if guided.valid is None else guided.valid
    return guided.per_million(met) or 0.0


def _distinct(guided: Guided) -> float:
    return guided.per_million(guided.distinct) or 0.0


def _bars(axes: Axes, result: Ablation, value: Callable[[Guided], float]) -> None:
    runs = [("paper", _PAPER, guided) for guided in PAPER]
    runs += [("ours", _OURS, guided) for guided in result.guided]
    names = [f"{who}: {_SHORT[guided.guide]}" for who, _, guided in runs]
    values = [value(guided) for _, _, guided in runs]
    places = list(range(len(runs)))[::-1]
    axes.barh(places, values, color=[color for _, color, _ in runs], height=0.62)
    axes.set_xscale("symlog", linthresh=_threshold(values))
    for (_, _, guided), place, number in zip(runs, places, values, strict=True):
        shown = f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"
        axes.annotate(
            f"at least {shown}" if value is _met and guided.valid is None else shown,
            (number, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(places, names, fontsize=9)
    axes.margins(x=0.18)
    axes.spines[["top", "right"]].set_visible(False)


_SHORT = {
    "none": "no guide",
    "distance": "shape distance",
    "distance-once": "shape distance, A.2",
    "bound": "completion bound",
}


def _threshold(values: list[float]) -> float:
    """Return the threshold of the linear part of the axis: a power of ten below all values."""
    least = min((value for value in values if value > 0), default=1.0)
    return 10.0 ** math.floor(math.log10(least))


def save_projection(found: ProjectionComparison, path: Path) -> None:
    """Write the training losses against steps and against time to `path` (PNG)."""
    save_figure(projection_figure(found), path, _DPI)


def projection_figure(found: ProjectionComparison) -> Figure:
    """Draw the training losses against steps and against time."""
    load_matplotlib()
    from matplotlib.figure import Figure

    assert found.timing is not None
    figure = Figure(figsize=(10.4, 4.4), layout="constrained")
    by_steps, by_time = figure.subplots(1, 2, sharey=True)
    pace = {ORIGINAL: found.timing.original.step_ms / 1e3}
    pace[OPERATOR] = pace[ORIGINAL] * found.timing.ratio
    for axes, way, unit in ((by_steps, STEPS, None), (by_time, TIME, pace)):
        for what, color in ((ORIGINAL, _PAPER), (OPERATOR, _OURS)):
            runs = [run for seed in found.seeds() if (run := found.run(what, way, seed))]
            label = "baseline projection" if what == ORIGINAL else found.settings["name"]
            _curves(axes, runs, color, label, 1.0 if unit is None else unit[what])
        axes.set_xlabel(
            "steps" if unit is None else "training time in seconds, from the median step"
        )
        axes.set_title(f"equal {way}", fontsize=10)
        _finish(axes)
    by_steps.set_ylabel("loss (nats per token)")
    figure.suptitle(
        f"Training loss of {found.settings['model']} on {found.settings['data']['name']}; "
        "squares: final validation loss",
        fontsize=11,
    )
    return figure


def _curves(axes: Axes, runs: list[ProjectionRun], color: str, label: str, unit: float) -> None:
    """Plot a line for each seed, without the first points, whose loss is too large."""
    for number, run in enumerate(runs):
        width = run.steps / max(len(run.losses), 1)
        places = [(i + 0.5) * width * unit for i in range(len(run.losses))]
        axes.plot(places[1:], run.losses[1:], color=color, lw=1.4, alpha=0.8)
        if run.loss is not None:
            axes.plot(run.steps * unit, run.loss, "s", color=color, ms=5, clip_on=False)
        if number == 0:
            axes.plot([], [], color=color, label=f"{label}, {_seeds(len(runs))}")


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def _finish(axes: Axes) -> None:
    axes.grid(axis="y", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)


def save_ranking(table: RankingFile, found: Agreement, path: Path) -> None:
    """Write accuracy at the high rung, and with another seed, over that at the low rung (PNG)."""
    load_matplotlib()
    from matplotlib.figure import Figure

    low, other, high = (table.accuracies(*which) for which in (("low", 0), ("low", 1), ("high", 0)))
    figure = Figure(figsize=(9.6, 4.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, values, label, name in (
        (panels[0], high, "at the high rung", "low rung, one seed"),
        (panels[1], other, "at the low rung, another seed", "two seeds of the low rung"),
    ):
        shared = [i for i in values if i in low]
        for zoo, color, what in ((False, _OURS, "sampled"), (True, _PAPER, "of the zoo")):
            selected = [i for i in shared if bool(table.entries[i].name) is zoo]
            axes.scatter(
                [100 * low[i] for i in selected],
                [100 * values[i] for i in selected],
                s=18,
                color=color,
                label=f"{what} ({len(selected)})",
            )
        middle = statistics.mean(axes.get_xlim())
        for i in shared:
            if values is high and table.entries[i].name:
                place = (100 * low[i], 100 * values[i])
                left = place[0] > middle  # left of the point, to stay inside the axes
                axes.annotate(
                    table.entries[i].name,
                    place,
                    xytext=(-4 if left else 4, 3),
                    textcoords="offset points",
                    horizontalalignment="right" if left else "left",
                    size=7,
                )
        each = found.correlation(name)
        value = "" if each.value is None else f": Spearman {each.value:.2f}"
        interval = "" if each.low is None else f" ({each.low:.2f} to {each.high:.2f})"
        axes.set_title(f"{each.count} operators{value}{interval}", size=10)
        axes.set_xlabel("accuracy at the low rung, %")
        axes.set_ylabel(f"accuracy {label}, %")
        axes.grid(alpha=0.3)
        axes.set_axisbelow(True)
        if shared:
            axes.legend(loc="lower right", frameon=False)
    save_figure(figure, path, _DPI)
