"""Networks as torch.compile and torch.export take them. Requires PyTorch."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence

import torch
from torch import fx, nn

# The module around a network that torch.export could not name otherwise.
WHOLE = "network"


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


def exportable(net: nn.Module) -> nn.Module:
    """Return the network, or a module around it if torch.export cannot name its parts.

    The graph of a network gets the names of its modules, parameters and buffers as attributes,
    beside those that every graph has: a part called `code` or `graph` fails there (torch 2.13).
    Names of parts begin with `WHOLE` and a dot in the module around the network.
    """
    graph = fx.GraphModule(nn.Module(), fx.Graph())
    taken = {*dir(graph), "range_constraints", "validate_inputs", "_guards_fn"} - {
        *dir(nn.Module())
    }
    tensors = [name for name, value in vars(net).items() if isinstance(value, torch.Tensor)]
    names = {*net._modules, *net._parameters, *net._buffers, *tensors}
    return _Whole(net) if names & taken else net


def shapes_by_parameter(net: nn.Module, shapes: Sequence[object]) -> tuple[object, ...]:
    """The shapes of a network's arguments as torch.export takes them: those of `*args` as one."""
    kinds = [each.kind for each in inspect.signature(net.forward).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        return tuple(shapes)
    first = kinds.index(inspect.Parameter.VAR_POSITIONAL)
    return (*shapes[:first], tuple(shapes[first:]))


class _Whole(nn.Module):
    """forward: has the parameters of that of the network, by which torch.export names inputs."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.add_module(WHOLE, net)
        self.train(net.training)

        def forward(*inputs: torch.Tensor) -> object:
            return net(*inputs)

        forward.__signature__ = inspect.signature(net.forward)  # type: ignore[attr-defined]
        self.forward = forward
