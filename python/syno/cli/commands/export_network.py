"""The network of `syno export --network`: a model with an operator in its slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from syno.cli import output

if TYPE_CHECKING:
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
    from syno.cli.commands.search import numbers
    from syno.codegen.export.write import network_subject
    from syno.study.training import networks

    if place is None:
        options = numbers(model_options)
        net, x = networks.fresh(operator, name, seed, options, image, classes, output.say)
    else:
        net, x = networks.trained(operator, *place, output.say)
    return network_subject(net, x, seed, plan_of=plan_of, fold_weights=fold_weights)
