"""What all figures share: colours, the marks of published values, and axes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING

from syno._util.printable import printable
from syno.runs.figures import load_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, which is suitable for color blindness, in a fixed order.
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8b95a1")
GREY = "#8b95a1"
LIGHT = "#e3e7ec"
# How bars of times that are not comparable are drawn.
HATCH = "////"
ORIGINAL = "original"
_ORIGINALS = ("none", "baseline", ORIGINAL)
_WORDS = {
    "operator-1": "Operator 1",
    "operator-2": "Operator 2",
    "stacked-conv": "stacked conv",
    "nas-pte-1": "NAS-PTE 1",
    "nas-pte-2": "NAS-PTE 2",
    "nas-pte-3": "NAS-PTE 3",
    "resnet18": "ResNet-18",
    "resnet34": "ResNet-34",
    "densenet121": "DenseNet-121",
    "resnext29_2x64d": "ResNeXt-29",
    "efficientnet_v2_s": "EfficientNetV2-S",
}


def words(name: str) -> str:
    """A name as figures show it; Matplotlib would interpret text between dollar signs."""
    if name in _ORIGINALS:
        return ORIGINAL
    return _WORDS.get(name) or printable(name, line=True).replace("$", r"\$")


def color_of(name: str, names: Sequence[str]) -> str:
    """The colour of a name among others; the original is grey."""
    others = [each for each in names if words(each) != ORIGINAL]
    return GREY if words(name) == ORIGINAL else COLORS[others.index(name) % len(COLORS)]


def lighter(color: str, amount: float = 0.55) -> tuple[float, float, float]:
    """A colour mixed with white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (part + (1 - part) * amount for part in to_rgb(color))
    return red, green, blue


def canvas(width: float, height: float) -> Figure:
    """An empty figure of this size in inches."""
    load_matplotlib()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def frame(axes: Axes, grid: str = "y") -> None:
    """A light grid behind the data, and no lines above and at the right."""
    axes.grid(axis=grid, color=LIGHT, linewidth=0.8)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def speedup_axis(axes: Axes, values: Sequence[float]) -> None:
    """A y axis of speed-ups with a line at 1; logarithmic where they differ by much."""
    axes.axhline(1, color="#444444", linewidth=0.9, linestyle="--", zorder=1)
    most, least = max([*values, 1.0]), min([*values, 1.0])
    if most > 6 * least:
        axes.set_yscale("log")
        low, high = math.floor(math.log10(least)), math.ceil(math.log10(most))
        steps = (1, 2, 5) if high - low <= 2 else (1, 3)
        ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
        ticks = [tick for tick in ticks if 0.7 * least <= tick <= 1.6 * most]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()
        axes.set_ylim(0.75 * least, 1.6 * most)
    else:
        axes.set_ylim(0, 1.18 * most)


def label_bar(axes: Axes, place: float, value: float, text: str, size: float = 6.5) -> None:
    """A text upright above a bar."""
    axes.annotate(
        text,
        (place, value),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=size,
        rotation=90,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
    )


def geometric_mean(values: Sequence[float]) -> float:
    """The geometric mean of positive values."""
    return math.exp(statistics.fmean(map(math.log, values)))
