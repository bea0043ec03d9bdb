"""Copies of networks, of those too that `copy.deepcopy` alone does not take. Requires PyTorch."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from syno._util.closures import Copies, OwnClosures
from syno._util.errors import UserError, first_line

Network = TypeVar("Network", bound=nn.Module)


class _Values(TorchFunctionMode):
    """`copy.deepcopy` copies the values of tensors that have a history, which torch refuses.

    `torch.nn.utils.weight_norm` leaves such a tensor in a layer after each step of a training; the
    next call computes it anew. A copy has no history.
    """

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        if func is torch.Tensor.__deepcopy__:
            tensor, memo = args
            assert isinstance(tensor, torch.Tensor) and isinstance(memo, dict)
            if not tensor.is_leaf:
                return memo.setdefault(id(tensor), tensor.detach().clone())
        return func(*args, **(kwargs or {}))


def copy_network(net: Network, memo: Copies | None = None) -> Network:
    """Return a copy of a network; everything that copies a network does it by this function.

    Modules, parameters and tensors that stand in several places do so in the copy. Functions that
    hold layers of the network, as closures do, hold those of the copy there.

    Args:
        net: the network.
        memo: what stands in the copy for an object of the network, by the object's id. After the
            call, it has all objects that were copied.

    Raises:
        UserError: a part of the network cannot be copied.
    """
    memo = {} if memo is None else memo
    try:
        closures = OwnClosures([vars(module) for module in net.modules()], memo)
        with _Values(), warnings.catch_warnings():
            # torch looks at its own deprecated class as it copies a traced graph.
            warnings.filterwarnings("ignore", ".*LeafSpec", FutureWarning)
            made = copy.deepcopy(net, memo)
        closures.fill()
        return made
    except MemoryError:
        raise
    except Exception as error:  # whatever a part of it raises
        raise UserError(
            f"the network {type(net).__name__} cannot be copied: {first_line(error)}\n"
            f"  in {_uncopied(net) or 'its own __deepcopy__'}\n"
            "  what to do: remove it, or give its class a method __deepcopy__"
        ) from error


def _uncopied(net: nn.Module) -> str:
    """The attribute that cannot be copied, in words."""
    modules = dict(net.named_modules())
    for name, module in modules.items():
        for key, value in vars(module).items():
            if key == "_modules":
                continue
            others = {id(each): each for each in modules.values()}
            try:
                with _Values():
                    copy.deepcopy(value, others)
            except Exception:
                return f"attribute '{key}' of " + (f"module '{name}'" if name else "the network")
    return ""


__all__ = ["Copies", "copy_network"]
