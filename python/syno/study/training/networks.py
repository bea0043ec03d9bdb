"""Networks with an operator in their slots, for export."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from syno._util.errors import UserError
from syno.network import models
from syno.operators.operator import Operator
from syno.store import Store
from syno.study.evaluate.network import Network, seeded
from syno.study.training.retraining import Retraining

Say = Callable[[str], None]


def _nothing(text: str) -> None:
    """Ignore a message."""


def fresh(
    operator: Operator,
    name: str,
    seed: int,
    model_options: Mapping[str, int | str],
    image: tuple[int, int],
    classes: int,
    say: Say = _nothing,
) -> tuple[nn.Module, torch.Tensor]:
    """Build a model with initial weights and the operator in its slots.

    Args:
        operator: the operator.
        name, model_options: the model.
        seed: of the initial weights.
        image: the channels of the input, and its height and width in pixels.
        classes: the number of classes.
        say: is called with a line for each slot that keeps its layer.

    Returns:
        The network, and an input for it.

    Raises:
        UserError: if the operator fits no slot.
    """
    channels, size = image
    with seeded(seed):
        net = models.build(
            name,
            classes=classes,
            channels=channels,
            size=size,
            **model_options,  # type: ignore[arg-type]  # `weights` is a path, others are numbers
        )
    network = Network(models.slots(net), (channels, size, size), seed)
    filled, report = network.with_operator(operator)
    for row in network.kept(report):
        say(f"{row.name} keeps its original layer: {row.reason}")
    return filled, torch.zeros(1, channels, size, size)


def trained(
    operator: Operator, store: str | None, study: str | None, say: Say = _nothing
) -> tuple[nn.Module, torch.Tensor]:
    """Train the network of a study with an operator again, as in the study.

    Args:
        operator: the operator.
        store: the address of the store.
        study: the name of the study; None if the store has only one.
        say: is called with lines about the progress.

    Returns:
        The network, and an input for it.

    Raises:
        UserError: if the training fails.
    """
    if store is None:
        raise UserError("the network of a study is in its store: name it with --store")
    with Store.open(store, read_only=True) as opened:
        summary = opened.summary(study)
    retraining = Retraining(summary)
    say(f"training the network of '{summary.study.name}' with the operator again")
    net, outcome = retraining.train(operator.text)
    if not outcome.ok:
        raise UserError(f"the training failed: {outcome.reason}")
    if outcome.accuracy is not None:
        say(f"validation accuracy: {outcome.accuracy:.1%}")
    return net, torch.zeros_like(retraining.network.inputs(1))
