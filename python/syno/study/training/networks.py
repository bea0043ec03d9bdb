"""Networks with or without an operator in their slots, for export."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

from syno._util.errors import UserError
from syno.network import models
from syno.operands.layers import ORIGINAL, fit_to_network, layer_specification
from syno.operands.lookup import named_operators
from syno.operands.options import Operand
from syno.operators.operator import Operator
from syno.store import Store
from syno.study.evaluate.network import Network, seeded
from syno.study.training.retraining import Retraining

Say = Callable[[str], None]


def _nothing(text: str) -> None:
    """Ignore a message."""


def fresh(
    op: str,
    name: str,
    seed: int,
    *,
    model_options: Mapping[str, int | str],
    images: Mapping[str, int | None],
    sizes: Mapping[str, int],
    operand: Operand | None = None,
    say: Say = _nothing,
) -> tuple[nn.Module, torch.Tensor]:
    """Build a model with initial weights and an operator in its slots.

    Args:
        op: an operator as for `syno train`; `none` is the model as it is.
        name, model_options: the model.
        seed: of the initial weights.
        images: `classes`, `channels` and `size` of a model for images, each None for that of the
            model.
        sizes: values of variables that the layers do not have.
        operand: where the operator is found.
        say: is called with a line for each slot that keeps its layer.

    Returns:
        The network, and an input for it.

    Raises:
        UserError: if `op` names several operators, or the operator fits no slot.
    """
    given = {what: value for what, value in images.items() if value is not None}
    with seeded(seed):
        net = models.build(name, **given, **model_options)  # type: ignore[arg-type]  # a path
    made = models.built(net)
    if op == ORIGINAL:
        return net.eval(), made.example()
    template = models.slots(net)
    where = operand or Operand()
    named = named_operators(
        [op],
        store=where.store,
        study=where.study,
        specification=where.specification(op),
        layers=layer_specification(template, sizes),
    )
    if len(named) != 1:
        raise UserError(
            f"'{op}' names {len(named)} operators\n"
            f"  expected: one of them      got: {', '.join(each.name for each in named)}"
        )
    network = Network(template, made.input_shape, seed)
    filled, report = network.with_operator(fit_to_network(named[0], template, sizes))
    for row in network.kept(report):
        say(f"{row.name} keeps its original layer: {row.reason}")
    return filled.eval(), made.example()


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
    example = retraining.network.inputs(1)
    assert isinstance(example, torch.Tensor)  # models by name have one input
    return net, torch.zeros_like(example)
