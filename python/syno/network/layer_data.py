"""What a slot shows of the layer that it replaces. Requires PyTorch.

A network may read attributes of its layers: channels for the shape of a view, the type of a weight
for the type of an input. A slot has these, whatever computes in it. With an operator in it, it has
no values of weights to give.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NoReturn

import torch
from torch.utils._pytree import tree_leaves

from syno._util.errors import UserError

_PLAIN = (bool, int, float, complex, str, bytes, type(None), enum.Enum, torch.dtype, torch.device)


def is_plain(value: object) -> bool:
    """Whether an attribute of a layer is data, the same whatever computes in its place."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(is_plain(each) for each in value)
    return isinstance(value, _PLAIN)


class WeightShape(torch.Tensor):
    """A tensor with the sizes, the type and the device of a weight, and without values.

    `refuse` is called with the name of the operation that asks for values.
    """

    refuse: Callable[[str], UserError]
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def of(
        weight: torch.Tensor, like: torch.Tensor, refuse: Callable[[str], UserError]
    ) -> WeightShape:
        """The shape of `weight`, with type and device of another tensor."""
        made: WeightShape = torch.Tensor._make_wrapper_subclass(
            WeightShape,
            weight.shape,
            dtype=like.dtype,
            device=like.device,
            requires_grad=weight.requires_grad,
        )
        made.refuse = refuse
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: object, types: object, args: object = (), kwargs: object = None
    ) -> NoReturn:
        leaves = tree_leaves((args, kwargs))
        first = next(leaf for leaf in leaves if isinstance(leaf, WeightShape))
        raise first.refuse(str(func))

    def __repr__(self, *, tensor_contents: object = None) -> str:  # type: ignore[override]
        return f"WeightShape({list(self.shape)}, dtype={self.dtype}, device='{self.device}')"


__all__ = ["WeightShape", "is_plain"]
