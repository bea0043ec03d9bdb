"""Isolation of evaluations in separate processes, if it is requested and possible."""

from __future__ import annotations

import functools
import pickle
import pickletools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from syno.data.custom import CustomData, CustomEvaluation
from syno.network.models.extras import PACKAGES
from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator, NotPossibleError, not_carried
from syno.study.evaluate.network import Network
from syno.study.evaluate.protocol import Evaluator, RungEvaluator

if TYPE_CHECKING:
    from syno.study.evaluate.evaluator_settings import EvaluatorSettings


def isolated(
    factory: Callable[..., Evaluator | RungEvaluator],
    network: Network,
    *arguments: object,
    wanted: bool | None,
    settings: EvaluatorSettings,
    **limits: Any,
) -> IsolatedEvaluator | None:
    """Start the evaluator `factory(network, *arguments, **settings)` in separate processes.

    Args:
        factory: makes the evaluator.
        network: its network.
        arguments, settings: further arguments of the factory.
        wanted: whether evaluations are isolated; None isolates them if that is possible.
        limits: further arguments of `IsolatedEvaluator`.

    Returns:
        The evaluator. None if isolation is not wanted, and, with a warning, if it is not possible
        and `wanted` is None.

    Raises:
        UserError: if isolation is wanted and not possible.
    """
    if wanted is False:
        return None
    try:
        _check_importable(network)
        for argument in arguments:
            _check_data(argument)
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
    """List the packages of extras that define classes of the network."""
    modules = {type(module) for module in network.template.modules()}
    roots = {base.__module__.partition(".")[0] for cls in modules for base in cls.__mro__}
    return [name for name in PACKAGES if name in roots]


def _check_importable(network: Network) -> None:
    """Raise a UserError for classes of a script, which another process cannot import."""
    found = {type(module) for module in network.template.modules()}
    here = sorted(cls.__qualname__ for cls in found if cls.__module__ == "__main__")
    if here:
        raise not_carried(f"{here[0]} is defined in the script that was started")


def _check_data(argument: object) -> None:
    """Raise a UserError for custom data that another process cannot have.

    A pickle holds classes and functions by the names of their modules. Those of a script, a
    notebook or an interactive session would be looked for in a module `__main__` that is another
    one there.
    """
    for what, part in _parts(argument).items():
        try:
            content = pickle.dumps(part)
        except Exception as error:  # whatever the parts of the user raise
            raise not_carried(f"{type(error).__name__}: {error}", what) from error
        name = _of_script(content)
        if name is not None:
            raise not_carried(f"'{name}' is defined in the script that was started", what)


def _parts(argument: object) -> dict[str, object]:
    """What a user gave of custom data, each under the words for it."""
    if isinstance(argument, CustomEvaluation):
        return {f"the function '{argument.name}'": argument.function}
    if not isinstance(argument, CustomData):
        return {}
    return {
        f"the data set '{argument.name}'": argument.train,
        "the data set for validation": argument.validation,
        "the collate_fn of the DataLoader": argument.batching.collate,
        "the loss": argument.loss,
        f"the metric '{argument.metric.name}'": argument.metric.function,
    }


def _of_script(content: bytes) -> str | None:
    """The first class or function of the module `__main__` in a pickle, by its name."""
    module = ""
    for operation, value, _ in pickletools.genops(content):
        if operation.name == "GLOBAL" and value:
            module, _, name = value.partition(" ")
            if module == "__main__":
                return name
        elif isinstance(value, str):
            if module == "__main__":
                return value
            module = value
    return None
