"""Networks with an operator in their slots, to be exported."""

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
    """For whoever does not want to be told."""


def fresh(
    operator: Operator,
    name: str,
    seed: int,
    model_options: Mapping[str, int | str],
    image: tuple[int, int],
    classes: int,
    say: Say = _nothing,
) -> tuple[nn.Module, torch.Tensor]:
    """A model with fresh weights and the operator in its slots, and an input for it.

    image: channels, and height and width in pixels; say: is told which layers are kept. UserError
    when the operator fits no slot.
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
    """The network of a study, trained once more with the operator as there, and an input for it.

    store: its address; say: is told what is done. UserError where the training fails.
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
