"""The arguments of `syno.search` and `syno.resume`: options, and objects of a program."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from syno._util.declaration import documented
from syno._util.errors import UserError
from syno._util.options import Options, argument, like, needed
from syno.study_options import ResumeOptions, StudyOptions

if TYPE_CHECKING:
    from torch import nn
    from torch.utils.data import DataLoader, Dataset

    from syno._util.inputs import Inputs
    from syno.data.custom import CustomData, CustomEvaluation, Loss, MetricFunction
    from syno.operators.operator import Operator
    from syno.operators.specification import Specification
    from syno.store import Outcome
    from syno.study.observer import StudyObserver
    from syno.study.progress import Callback


@documented
@dataclass(frozen=True, kw_only=True)
class DataArguments(Options):
    """How networks learn from data of the program, which no data set has by name."""

    validation: float | Dataset[object] | DataLoader[object] | None = argument(
        "Of a Dataset: another one to validate with, or the share of `data` for it.",
        None,
        unset="that of the fidelity, a tenth",
    )
    loss: Loss | None = argument(
        "Of a Dataset: (outputs, targets) -> mean loss.", None, unset="the cross-entropy of classes"
    )
    metric: MetricFunction | str | None = argument(
        "Of a Dataset: what operators are judged by, (outputs, targets) -> mean over a batch, "
        "`accuracy` or `loss`. Beside `evaluate`: the name of what it returns.",
        None,
        unset="the accuracy of classes, the loss for a custom loss",
    )
    maximize: bool = argument("Whether greater values of a custom metric are better.", True)

    def _learned(self) -> dict[str, Any]:
        """The arguments of `custom`."""
        return {each.name: self[each.name] for each in dataclasses.fields(DataArguments)}

    def custom_data(self, data: object, net: object) -> CustomData | None:
        """Return custom data for a network; None for a data set by name.

        Raises:
            UserError: if the arguments do not go together.
        """
        from syno.data.custom import CustomData
        from syno.study.evaluate.custom import custom

        found = custom(data, net=net, **self._learned())  # type: ignore[arg-type]
        assert found is None or isinstance(found, CustomData)
        return found


@documented
@dataclass(frozen=True, kw_only=True)
class CustomArguments(DataArguments):
    """How networks learn from data of the program, or are evaluated by a function of it."""

    evaluate: Callable[[nn.Module], float | Outcome] | None = argument(
        "A function that trains and evaluates a network in any way, instead of data. It may change "
        "the network, and returns the value of the metric or a `syno.Outcome`.",
        None,
    )
    example_input: Inputs | None = argument(
        "An input of the network for `evaluate`, batch first, to time it with; a tuple of several "
        "arguments.",
        None,
    )

    def custom(
        self, data: object, net: str | nn.Module | None
    ) -> CustomData | CustomEvaluation | None:
        """Return custom data, or a custom evaluation, for a network; None for a data set by name.

        Raises:
            UserError: if the arguments do not go together.
        """
        from syno.study.evaluate.custom import custom

        return custom(
            data,
            net=net,
            evaluate=self.evaluate,
            example_input=self.example_input,
            **self._learned(),
        )


@documented
@dataclass(frozen=True)
class Search(StudyOptions, CustomArguments):
    """A search: its options, its network, and its data."""

    net: str | nn.Module = field(
        metadata=needed(
            "The name of a model (`syno.models.list_models()`), with `model_options`, or a module "
            "whose 3x3 convolutions or placeholders are to be replaced. Slots of a module define "
            "the resolution of the default fidelity: that of the example input that created them."
        )
    )
    data: str | Dataset[object] | DataLoader[object] | None = argument(
        "A data set as in `syno.data.load`, or a text as in `load_text`. For a text, operators are "
        "judged by the validation loss instead of the accuracy, and one that reads later positions "
        "is rejected before training. Or a torch.utils.data.Dataset of pairs (input, target), or a "
        "DataLoader, of which the batch size and `collate_fn` are taken.",
        None,
    )
    _: KW_ONLY
    specification: Specification | str | None = argument(
        "What operators are asked for, or the name of a preset; its bindings are taken from the "
        "network.",
        None,
        unset="`small_vision`, or `small_text` for text (in `syno.study.specifications`), for no "
        "more MACs than the layers cost",
    )
    coefficient: Sequence[str] = argument(
        "Other values of coefficients of the specification, such as `g=4`.", ()
    )
    enqueue: Sequence[str | Operator] = argument(
        "Operators to evaluate first, as in `syno.train_operators`: of the zoo, files, formulas or "
        "Operator objects. They count among the `evaluations`.",
        (),
    )
    observer: StudyObserver | None = argument(
        "Is told how the search goes.",
        None,
        unset="a progress bar on a terminal or in a notebook; elsewhere, one line on standard "
        "error with the layers that are replaced",
    )
    callbacks: Sequence[Callback] = argument(
        "Functions that are called with each trial when it is stored; the search stops if one of "
        "them returns True.",
        (),
    )


@documented
@dataclass(frozen=True, kw_only=True)
class Resumption(ResumeOptions, CustomArguments):
    """A study that is resumed, with what a store cannot hold."""

    net: nn.Module | None = argument(
        "The module that the study was started with, if it was started with one.", None
    )
    data: Dataset[object] | DataLoader[object] | None = argument(
        "The custom data of the search, with its other arguments, which a store cannot hold.", None
    )
    observer: StudyObserver | None = like(Search, "observer")
    callbacks: Sequence[Callback] = like(Search, "callbacks")

    def custom_again(
        self, study: str, before: str, net: str | nn.Module, *, is_custom: bool
    ) -> CustomData | CustomEvaluation | None:
        """Return the custom data that a study is resumed with; None for a data set by name.

        Args:
            study: its name.
            before: the name of the data that it was started with.
            net: its network.
            is_custom: whether it was started with custom data.

        Raises:
            UserError: if the data is not of the kind that the study was started with.
        """
        has_data = self.data is not None or self.evaluate is not None
        if not is_custom:
            if has_data:
                raise UserError(f"study '{study}' is about the data set '{before}'")
            return None
        if not has_data:
            raise UserError(
                f"study '{study}' was started with '{before}', which a store cannot hold\n"
                "  what to do: syno.resume(store, study, net=..., data=...) or evaluate=..., with "
                "the arguments\n              that the search had"
            )
        return self.custom(self.data, net)
