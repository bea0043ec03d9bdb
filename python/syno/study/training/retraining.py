"""Retraining of the networks of a study: equal seeds and fidelities give equal weights."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno._util.torch_threads import torch_threads
from syno.operators.specification import read_specification

if TYPE_CHECKING:
    from torch import nn

    from syno.store import StudySummary
    from syno.study import StudySettings
    from syno.study.evaluate.loading import NamedData
    from syno.study.evaluate.network import Network
    from syno.train import TrainingOutcome


class Retraining:
    """Trains the networks of a study again.

    Args:
        summary: the study.
        data_dir: the folder of the data, if it moved.

    Raises:
        UserError: for a study of a module, which a store cannot hold, and if the data is not that
            of the study.
    """

    def __init__(self, summary: StudySummary, data_dir: str | None = None) -> None:
        from syno.study.evaluate.loading import load_for
        from syno.study.evaluate.network import Network
        from syno.study.study import settings_of
        from syno.train import Fidelity

        settings = settings_of(summary.study, list(summary.events))
        if settings.model is None or settings.data is None or settings.metric is not None:
            raise UserError(
                f"study '{summary.study.name}' is about a module or data that the store does not "
                "hold\n"
                "  expected: a study of a named model, such as resnet-small"
            )
        self.fidelity = Fidelity.from_json(settings.fidelity)
        dataset = load_for(
            settings.data, data_dir or settings.data_dir, self.fidelity, settings.tokenizer
        )
        if dataset.fingerprint != settings.fingerprint:
            raise UserError(
                f"the data set '{settings.data}' is not what the study was started with\n"
                f"  expected: {settings.fingerprint}      got: {dataset.fingerprint}"
            )
        self.settings: StudySettings = settings
        self.dataset: NamedData = dataset
        self.network: Network = Network.named(
            settings.model,
            settings.model_options,
            dataset,
            settings.seed,
            size=self.fidelity.resolution,
            context=self.fidelity.context,
        )
        self._specification = read_specification(summary.study.specification)

    def train(self, text: str | None) -> tuple[nn.Module, TrainingOutcome]:
        """Train the network with an operator, or the original network (None).

        Returns:
            The network, and the outcome of the training.
        """
        from syno.operators.operator import Operator
        from syno.study.evaluate.engines import EAGER, kernels
        from syno.train import train

        net = self.network.original()
        if text is not None:
            operator = Operator.from_text(text, self._specification)
            net, _ = self.network.with_operator(operator)
        wanted = self.settings.train.kernels or EAGER
        with (
            torch_threads(self.settings.timing.threads),
            kernels(net, wanted, lambda text: warnings.warn(text, stacklevel=4)),
        ):
            return net, train(net, self.dataset, self.fidelity, self.settings.seed)
