"""How much training an operator gets in a search: the fidelity, or a ladder of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from syno._util.errors import UserError
from syno.options import TrainOptions
from syno.study.fidelity.ladder import Ladder, ladder_names, resolve_ladder

if TYPE_CHECKING:
    from torch import nn

    from syno.data.custom import CustomData, CustomEvaluation
    from syno.train import Fidelity


def chosen_ladder(train: TrainOptions) -> Ladder | None:
    """Return the ladder that the options name, or None.

    Raises:
        UserError: the ladder is unknown, or other options contradict it.
    """
    if train.ladder is None:
        if train.eta is not None:
            raise UserError(
                f"eta (--eta) is {train.eta}, and there is no ladder\n"
                f"  what to do: name one with ladder= (--ladder): {', '.join(ladder_names())}"
            )
        return None
    if train.fidelity is not None:
        raise UserError(
            "a search has a ladder (--ladder) or a fidelity (--fidelity), not both\n"
            "  the rungs of a ladder define how networks are trained; a file defines a custom "
            "ladder"
        )
    return resolve_ladder(train.ladder, train.eta)


def chosen_fidelity(
    net: str | nn.Module,
    given: Fidelity | str | None,
    data: str | CustomData | CustomEvaluation,
    data_dir: str | None,
    validation: object,
    ladder: Ladder | None,
) -> Fidelity:
    """Return the fidelity at which a search trains, by its options, its data and its network.

    The resolution of images is that of the network's example input, where there is one.

    Raises:
        UserError: the fidelity is unknown, or does not go with custom data.
    """
    from syno.network.surgery import sample_shape
    from syno.study.evaluate.custom import custom_fidelity
    from syno.study.evaluate.loading import fidelity_for
    from syno.train import Fidelity, fidelity

    if ladder is not None:
        return ladder.top.fidelity
    if not isinstance(data, str):
        return custom_fidelity(data, given, validation)
    if isinstance(given, Fidelity):
        return given
    if given is not None:
        return fidelity(given)
    found = fidelity_for(None, {}, data, data_dir)
    sample = None if isinstance(net, str) else sample_shape(net)
    if sample is None or found.resolution is None or sample[-1] == found.resolution:
        return found
    return fidelity_for(None, {"resolution": sample[-1]}, data, data_dir)
