"""Evaluations in processes of their own, where that is wanted and possible."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from syno.network.models.extras import PACKAGES
from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator, NotPossibleError, not_carried
from syno.study.evaluate.network import Network
from syno.study.evaluate.protocol import Evaluator, RungEvaluator


def isolated(
    factory: Callable[..., Evaluator | RungEvaluator],
    network: Network,
    *arguments: object,
    wanted: bool | None,
    settings: dict[str, Any],
    **limits: Any,
) -> IsolatedEvaluator | None:
    """The evaluator that `factory(network, *arguments, **settings)` makes, started in processes of
    its own; None where that is not wanted, or not possible and not asked for by name (`wanted` is
    None), which a warning says.

    limits: further arguments of `IsolatedEvaluator`.
    """
    if wanted is False:
        return None
    try:
        _check_importable(network)
        made = IsolatedEvaluator(
            functools.partial(factory, network, *arguments, **settings),
            extras=_extras(network),
            **limits,
        )
        made.start()
    except NotPossibleError as error:
        if wanted:
            raise
        warnings.warn(
            f"evaluations are not isolated, so an operator that crashes ends this process: {error}",
            stacklevel=4,
        )
        return None
    return made


def _extras(network: Network) -> list[str]:
    """The packages of extras that the classes of the network come from."""
    modules = {type(module) for module in network.template.modules()}
    roots = {base.__module__.partition(".")[0] for cls in modules for base in cls.__mro__}
    return [name for name in PACKAGES if name in roots]


def _check_importable(network: Network) -> None:
    """UserError for classes of a script: another process does not have them."""
    found = {type(module) for module in network.template.modules()}
    here = sorted(cls.__qualname__ for cls in found if cls.__module__ == "__main__")
    if here:
        raise not_carried(f"{here[0]} is defined in the script that was started")
