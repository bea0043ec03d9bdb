"""Which code computes a node of a graph in the network library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import fx

# The operator of torch: a function of the lowering and the node, which adds steps and a value.
CODE: dict[object, Callable[[Any, fx.Node], None]] = {}


def code(*targets: object) -> Callable[[Any], Any]:
    """Decorator of the function that computes nodes of these operators."""

    def register(function: Any) -> Any:
        for target in targets:
            CODE[target] = function
        return function

    return register
