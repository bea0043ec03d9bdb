"""Functions that torch.compile keeps apart."""

from __future__ import annotations

import types
from collections.abc import Callable

import torch
from torch import nn


def with_own_code(net: nn.Module) -> Callable[..., torch.Tensor]:
    """Return a function that calls the network and shares its code object with no other.

    TorchDynamo keeps what it compiled by code object, and compiles at most
    `torch._dynamo.config.recompile_limit` times for each; then it runs the code as it is. Networks
    of one class share the code of `forward`. Compiled by themselves, the ninth would run eagerly,
    and each call would first test the guards of the others.
    """

    def network(*inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = net(*inputs)
        return result

    return types.FunctionType(
        network.__code__.replace(), network.__globals__, closure=network.__closure__
    )
