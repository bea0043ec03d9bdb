"""All figures by name, with the command that makes the data of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from syno_lab.figures import case_study, end_to_end, layer_wise, pareto, synthesis
from syno_lab.figures.drawing import Drawing
from syno_lab.figures.sources import Sources


@dataclass(frozen=True)
class Plan:
    """A figure: its name, what it is in the paper, what it shows, the command that makes its data,
    and the function that draws it, which returns None without data."""

    name: str
    paper: str
    title: str
    command: str
    draw: Callable[[Sources], Drawing | None]


FIGURES = {
    plan.name: plan
    for plan in (
        Plan(
            "end-to-end",
            "Figure 5",
            "end-to-end speed-up of networks with operators",
            "syno bench network --model resnet18 --json > network-resnet18.json",
            end_to_end.draw,
        ),
        Plan(
            "pareto",
            "Figure 6",
            "fronts of accuracy and speed",
            "syno search --data cifar10 --evaluations 20 --store runs.db",
            pareto.draw,
        ),
        Plan(
            "case-study",
            "Figure 8",
            "Operator 1, stacked convolution and INT8: accuracy and speed",
            "syno train operator-1 stacked-conv --baseline --quantize --data cifar10 --json "
            "> case-study.json",
            case_study.draw,
        ),
        Plan(
            "layer-wise",
            "Figure 9",
            "speed-up in each layer, beside NAS-PTE",
            "syno bench layers --model resnet34 --out layers.json",
            layer_wise.draw,
        ),
        Plan(
            "loss",
            "Figure 10",
            "training loss of a language model",
            "syno experiment projection --data tinyshakespeare --out projection.json",
            synthesis.draw_loss,
        ),
        Plan(
            "canonical-rate",
            "Table 2",
            "share of canonical samples by size",
            "syno experiment canonical-rate --preset paper/resnet18 --samples 6452 --json "
            "> canonical-rate.json",
            synthesis.draw_rates,
        ),
        Plan(
            "distance-ablation",
            "section 9.4",
            "what random trials find with and without a distance",
            "syno experiment distance-ablation --preset paper/resnet18 --trials 50000 --json "
            "> distance-ablation.json",
            synthesis.draw_ablation,
        ),
    )
}
