"""The case study (the paper's Figure 8): Operator 1, stacked convolution and INT8."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno_lab import published
from syno_lab.figures import style
from syno_lab.figures.drawing import Drawing, Row
from syno_lab.figures.sources import Read, Sources, Trained, TrainedRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = {"float32": "o", "int8": "s"}


def draw(sources: Sources) -> Drawing | None:
    """Accuracy over speed-up of what was trained beside a baseline, and the published points."""
    found = [
        read
        for read in sources.trainings
        if read.content.is_case_study and any(row.speedup for row in read.content.rows)
    ]
    if not found:
        return None
    figure = style.canvas(3.9 * (len(found) + 1), 3.5)
    panels = figure.subplots(1, len(found) + 1, squeeze=False)[0]
    rows: list[Row] = []
    for axes, read in zip(panels, found, strict=False):
        rows += _measured(axes, read)
    rows += _published(panels[-1])
    return Drawing(figure, rows)


def _label(row: TrainedRow) -> str:
    return style.words(row.name) + (" in INT8" if row.precision == "int8" else "")


def _measured(axes: Axes, read: Read[Trained]) -> list[Row]:
    names = list(dict.fromkeys(row.name for row in read.content.rows))
    rows: list[Row] = []
    for row in read.content.rows:
        is_original = row.name == "baseline" and row.precision == "float32"
        speedup = 1.0 if is_original else row.speedup
        rows.append(
            {
                "source": read.source,
                "comparable": "yes",
                "fidelity": read.content.fidelity,
                "subject": _label(row),
                "accuracy": 100 * row.accuracy,
                "deviation": None if row.deviation is None else 100 * row.deviation,
                "milliseconds": row.latency_ms,
                "speedup": speedup,
                "macs": row.macs,
                "params": row.params,
            }
        )
        if speedup is None:
            continue
        axes.errorbar(
            speedup,
            100 * row.accuracy,
            yerr=None if row.deviation is None else 100 * row.deviation,
            fmt=_MARKS.get(row.precision, "^"),
            color=style.color_of(row.name, names),
            ms=7,
            capsize=3,
            label=_label(row),
        )
    style.frame(axes, "both")
    axes.margins(0.12, 0.18)
    axes.set_xlabel("speed-up over the original network")
    axes.set_ylabel("accuracy, % (validation)")
    axes.set_title(f"measured: {style.words(read.content.fidelity)}", fontsize=9)
    axes.legend(frameon=False, fontsize=7)
    return rows


def _published(axes: Axes) -> list[Row]:
    """The accuracies of the paper's ResNet-18 on ImageNet; its latencies are TVM's."""
    found = [
        each
        for each in published.statements()
        if each.what == "imagenet_top1" and each.subject.startswith("resnet18 ")
    ]
    subjects = [each.subject.removeprefix("resnet18 ").partition(" ") for each in found]
    names = list(dict.fromkeys(name for name, _, _ in subjects))
    labels = [style.words(name) + (" in INT8" if int8 else "") for name, _, int8 in subjects]
    places = range(len(found))[::-1]
    for each, place, (name, _, int8) in zip(found, places, subjects, strict=True):
        mark = _MARKS["int8" if int8 else "float32"]
        axes.plot(each.value, place, mark, color=style.color_of(name, names), ms=7)
        axes.annotate(
            f"{each.value:.2f}",
            (each.value, place),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            fontsize=7.5,
        )
    axes.set_yticks(list(places), labels, fontsize=8)
    axes.margins(0.12, 0.15)
    style.frame(axes, "x")
    axes.set_xlabel("top-1 accuracy on ImageNet, %")
    axes.set_title("published: ResNet-18", fontsize=9)
    return [
        {
            "source": f"published: {each.source}",
            "comparable": "other training",
            "fidelity": each.condition,
            "subject": label,
            "accuracy": each.value,
            "deviation": None,
            "milliseconds": None,
            "speedup": None,
            "macs": None,
            "params": None,
        }
        for each, label in zip(found, labels, strict=True)
    ]
