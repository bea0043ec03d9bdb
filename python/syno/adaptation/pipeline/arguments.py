"""The arguments of `syno.adapt`: options, and objects of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from syno._util.declaration import documented
from syno._util.options import argument, needed
from syno.study.arguments import DataArguments
from syno.study_options import AdaptationOptions

if TYPE_CHECKING:
    from torch import nn

    from syno._util.inputs import Inputs
    from syno.adaptation.pipeline.progress import AdaptationObserver
    from syno.network.layers import LayerFilter
    from syno.operators.operator import Operator
    from syno.study.results import StudyResults
    from syno.train import Fidelity
    from syno.train.distillation import Distance


@documented
@dataclass(frozen=True)
class AdaptationArguments(AdaptationOptions, DataArguments):
    """An adaptation: its options, a trained network, and its data."""

    net: nn.Module | str | StudyResults = field(
        metadata=needed(
            "A trained network, the name of a model (with `weights` in `model_options`), or the "
            "results of a study (`syno.load_study`), whose baseline network is taken."
        )
    )
    data: object = argument(
        "The name of a data set, a torch.utils.data.Dataset or a DataLoader.",
        None,
        unset="that of the study",
    )
    _: KW_ONLY
    where: LayerFilter | Sequence[LayerFilter] | None = argument(
        "Filters of the layers to replace, as in `syno.substitute`.",
        None,
        unset="the slots of the network or model, or its 3x3 convolutions",
    )
    example_input: Inputs | None = argument(
        "An input of the network, with which slots are made for `where`; a tuple of several "
        "arguments.",
        None,
    )
    operators: Sequence[str | Operator] = argument(
        "Further candidates, as for `syno.train_operators`.", ()
    )
    fidelity: Fidelity | str | Mapping[str, int | str] | None = argument(
        "How long networks are fine-tuned, and with which recipe; or changes of the default one, "
        "such as `{'epochs': 2}`.",
        None,
    )
    distance: Distance | None = argument(
        "How far outputs are from the original's, for custom data: a function of the outputs of a "
        "network and of the original, which returns a scalar tensor. It scores networks, and the "
        "fine-tuning makes it small beside the loss.",
        None,
        unset="the Kullback-Leibler divergence of classes; else the mean of the squared errors of "
        "all outputs, relative to their variance",
    )
    progress: AdaptationObserver | None = argument(
        "Called with (phase, done, total, remark). The phase `study` has the name of the study as "
        "its remark, `forecast` a sentence about the time, and `note` one about what cannot be "
        "compiled.",
        None,
        unset="a progress bar on a terminal or in a notebook; elsewhere, a line on standard error "
        "every 20 seconds",
    )
