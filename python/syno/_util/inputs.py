"""Batches of inputs of a network: a tensor, or a tuple of the arguments of `forward`. Needs torch.

Targets may be nested in any way; what works on a batch here works on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

# A batch of inputs of a network: a tensor, or a tuple of them where the network has several inputs.
Inputs: TypeAlias = "torch.Tensor | tuple[torch.Tensor, ...]"
# Targets of a loss of the user: a tensor, or any nesting of tensors.
Targets: TypeAlias = Any
_Batch = TypeVar("_Batch")


def arguments(inputs: Inputs) -> tuple[torch.Tensor, ...]:
    """The arguments of `forward`."""
    return inputs if isinstance(inputs, tuple) else (inputs,)


def one_or_several(tensors: Sequence[torch.Tensor]) -> Inputs:
    """A tensor where there is one, or else a tuple of them."""
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def mapped(change: Callable[[torch.Tensor], torch.Tensor], batch: _Batch) -> _Batch:
    """A batch with each of its tensors changed."""
    found: _Batch = tree_map_only(torch.Tensor, change, batch)
    return found


def tensors_in(batch: object) -> list[torch.Tensor]:
    """The tensors of a batch, however they are nested."""
    return [each for each in tree_leaves(batch) if isinstance(each, torch.Tensor)]


def samples_in(batch: object) -> int:
    """The number of samples: the first dimension of each tensor."""
    return len(tensors_in(batch)[0])


def first(batch: _Batch, count: int) -> _Batch:
    """The first samples of a batch."""
    return mapped(lambda each: each[:count], batch)


def samples_of(inputs: Inputs) -> Iterator[tuple[torch.Tensor, ...]]:
    """The arguments [1, ...] for each sample of a batch."""
    yield from zip(*(each.split(1) for each in arguments(inputs)), strict=True)


def shown(batch: object) -> str:
    """Shapes and types of a batch, in words: `[2, 3, 8, 8] float32 and [2, 5] int64`."""
    return " and ".join(
        f"{list(each.shape)} {str(each.dtype).removeprefix('torch.')}" for each in tensors_in(batch)
    )
