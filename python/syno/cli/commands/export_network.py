"""The network of `syno export --network`: a model with an operator in its slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.cli import output

if TYPE_CHECKING:
    import torch
    from torch import nn

    from syno import Operator
    from syno.codegen.export.formats import Subject
    from syno.operators.kernel import KernelPack


def subject(
    operator: Operator,
    name: str,
    place: tuple[str | None, str | None] | None,
    seed: int,
    *,
    model_options: Sequence[str],
    image: tuple[int, int],
    classes: int,
    plan_of: Callable[[KernelPack], int],
    fold_weights: bool,
) -> Subject:
    """What to export: the model of that name with fresh weights, or the network of a study.

    place: (store, study) for the network of a study, trained with the operator as there. plan_of,
    fold_weights: as in `network_subject`. UserError when the operator fits no slot.
    """
    from syno.codegen.export.write import network_subject

    if place is None:
        net, x = _fresh(operator, name, seed, model_options, image, classes)
    else:
        net, x = _trained(operator, *place)
    return network_subject(net, x, seed, plan_of=plan_of, fold_weights=fold_weights)


def _fresh(
    operator: Operator,
    name: str,
    seed: int,
    model_options: Sequence[str],
    image: tuple[int, int],
    classes: int,
) -> tuple[nn.Module, torch.Tensor]:
    import torch

    from syno.cli.commands.search import numbers
    from syno.network import models
    from syno.study.evaluate.network import Network, seeded

    channels, size = image
    with seeded(seed):
        net = models.build(
            name, classes=classes, channels=channels, size=size, **numbers(model_options)
        )
    network = Network(models.slots(net), (channels, size, size), seed)
    filled, report = network.with_operator(operator)
    for row in network.kept(report):
        output.say(f"{row.name} keeps its own layer: {row.reason}")
    return filled, torch.zeros(1, channels, size, size)


def _trained(
    operator: Operator, store: str | None, study: str | None
) -> tuple[nn.Module, torch.Tensor]:
    import torch

    from syno.store import Store
    from syno.study.training.retraining import Retraining

    if store is None:
        raise UserError("the network of a study is in its store: name it with --store")
    with Store.open(store, read_only=True) as opened:
        summary = opened.summary(study)
    retraining = Retraining(summary)
    output.say(f"training the network of '{summary.study.name}' with the operator again")
    net, outcome = retraining.train(operator.text)
    if not outcome.ok:
        raise UserError(f"the training failed: {outcome.reason}")
    if outcome.accuracy is not None:
        output.say(f"accuracy on the hold-out: {outcome.accuracy:.1%}")
    return net, torch.zeros_like(retraining.network.inputs(1))
