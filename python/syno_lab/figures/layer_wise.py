"""Layer-wise speed-up (the paper's Figure 9): operators and NAS-PTE in each layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno._util import numbers as fmt
from syno.engines.engine import without
from syno_lab import published
from syno_lab.experiments.layers.results import LayerResults, LayerRun, LayerTime
from syno_lab.figures import style
from syno_lab.figures.drawing import Drawing, Row
from syno_lab.figures.sources import Read, Sources

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 0.84
# Means over the layers that the paper states, and the subject of each.
_STATED = {
    "operator-1": ("layers operator-1", "mean_speedup_cpu"),
    "operator-2": ("layers operator-2", "mean_speedup_cpu"),
}


def draw(sources: Sources) -> Drawing | None:
    """For each file a group of bars for each layer, one for the mean, and one of the paper's."""
    found = [read for read in sources.layers if read.content.layers]
    if not found:
        return None
    figure = style.canvas(10.5, 3.8 * len(found))
    panels = figure.subplots(len(found), 1, squeeze=False)[:, 0]
    rows: list[Row] = []
    for axes, read in zip(panels, found, strict=True):
        rows += _panel(axes, read)
    rows += [
        {
            "source": f"published: {each.source}",
            "comparable": published.NOT_COMPARABLE,
            "device": each.what.removeprefix("mean_speedup_"),
            "layer": "mean",
            "subject": each.subject.removeprefix("layers "),
            "engine": "TVM",
            "speedup": each.value,
        }
        for each in published.statements()
        if each.what.startswith("mean_speedup_")
    ]
    return Drawing(figure, rows)


def _panel(axes: Axes, read: Read[LayerResults]) -> list[Row]:
    found = read.content
    subjects = found.subjects()
    width = _WIDTH / len(subjects)
    values: list[float] = []
    rows: list[Row] = []
    for number, subject in enumerate(subjects):
        color = style.color_of(subject, subjects)
        shift = (number + 0.5) * width - _WIDTH / 2
        bars: dict[float, float] = {}
        for place, run in enumerate(found.layers):
            time = run.best(subject)
            if time is None:
                axes.annotate("×", (place + shift, 1), ha="center", va="center", color=color)
            else:
                bars[place + shift] = time.speedup
            rows += [_row(read, run, each) for each in run.times if each.subject == subject]
        mean = found.mean_speedup(subject)
        if mean is not None:
            bars[len(found.layers) + shift] = mean[0]
            style.label_bar(axes, len(found.layers) + shift, mean[0], f"{mean[0]:.2f}")
        values += bars.values()
        axes.bar(list(bars), list(bars.values()), width, color=color, label=style.words(subject))
        if subject in _STATED:
            stated = published.statement(*_STATED[subject]).value
            x = len(found.layers) + 1 + shift
            axes.bar(x, stated, width, color="white", edgecolor=color, hatch=style.HATCH)
            style.label_bar(axes, x, stated, f"{stated:.2f}")
            values.append(stated)
    style.speedup_axis(axes, values)
    style.frame(axes)
    layers = [f"{_label(run.layer)}\n({run.count}x)" for run in found.layers]
    labels = [*layers, "geometric\nmean", "paper's mean,\nArm CPU, TVM\n(not comparable)"]
    axes.set_xticks(range(len(labels)), labels, fontsize=7)
    axes.set_xlim(-0.6, len(labels) - 0.4)
    axes.axvline(len(layers) - 0.5, color=style.LIGHT, linewidth=1)
    axes.set_ylabel("speed-up over the original layer\nin the fastest other engine")
    device = str(found.layers[0].environment.get("device", ""))
    threads = fmt.counted(int(str(found.settings["threads"])), "thread")
    noisy = ", noisy" if found.noisy else ""
    missing = f", {without(found.missing)}" if found.missing else ""
    axes.set_title(
        f"measured: {style.words(str(found.settings['model']))} on {device}, {threads}, "
        f"float32, each subject in its fastest engine{missing}{noisy}",
        fontsize=9,
    )
    axes.legend(frameon=False, fontsize=7, ncols=len(subjects), loc="upper left")
    axes.set_ylim(top=axes.get_ylim()[1] * (1.35 if axes.get_yscale() == "log" else 1.15))
    return rows


def _label(layer: str) -> str:
    """The label of a layer in lines, with a kernel that is not 3x3 in words."""
    shape, _, kernel = layer.partition("-k")
    first, _, last = shape.partition("-")
    lines = [f"{first} to" if last else first, last, f"{kernel}x{kernel}" if kernel else ""]
    return "\n".join(line for line in lines if line)


def _row(read: Read[LayerResults], run: LayerRun, time: LayerTime) -> Row:
    cost = run.subjects[time.subject]
    return {
        "source": read.source,
        "comparable": "yes",
        "device": run.environment.get("device"),
        "layer": run.layer,
        "subject": style.words(time.subject),
        "engine": time.engine,
        "speedup": time.speedup,
        "milliseconds": time.median_ms,
        "low_ms": time.low_ms,
        "high_ms": time.high_ms,
        "floor_ms": time.floor_ms,
        "roofline": time.roofline,
        "count": run.count,
        "macs": cost.macs,
        "params": cost.params,
        "original_engine": run.rival,
        "missing_engines": " ".join(run.missing),
        "control_spread": run.control_spread,
        "noisy": run.noisy,
        "threads": read.content.settings["threads"],
    }
