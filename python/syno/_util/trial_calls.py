"""Trial calls of networks, and whether their results agree. Requires PyTorch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch
from torch.utils._pytree import tree_leaves

from syno._util.errors import UserError

# Largest difference of a graph from the network that it was traced from, relative to the largest
# output: both compute the same operations of PyTorch.
_TOLERANCE = 1e-3


def agree(
    found: Callable[..., object],
    expected: Callable[..., object],
    inputs: tuple[torch.Tensor, ...],
) -> bool:
    """Whether a traced network computes what the network does; both may change what they get."""
    results = []
    for network in (expected, found):
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            results.append(tensors_of(network(*copies(inputs))))
    right, made = results
    return len(made) == len(right) and all(
        difference(a, b) <= _TOLERANCE for a, b in zip(made, right, strict=True)
    )


def keeps_state(buffer: str) -> UserError:
    """The error of a network that changes a buffer when it is called."""
    return UserError(
        f"the network changes its buffer '{buffer}' in a call\n"
        "  expected: a network that keeps no state from call to call\n"
        "  what to do: give it the state as an input, and return the new one"
    )


def copies(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Inputs for a trial call, which may change them."""
    return tuple(x.detach().clone() for x in inputs)


def random_like(inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Copies of inputs, with random numbers where they are real numbers."""
    generator = torch.Generator().manual_seed(0)
    return tuple(
        torch.randn(x.shape, generator=generator) if x.is_floating_point() else x.clone()
        for x in inputs
    )


def tensors_of(value: object) -> list[torch.Tensor]:
    """The tensors of a result of a network, however they are nested, also in dataclasses."""
    found: list[torch.Tensor] = []
    for each in tree_leaves(value):
        if isinstance(each, torch.Tensor):
            found.append(each)
        elif dataclasses.is_dataclass(each):
            for field in dataclasses.fields(each):
                found += tensors_of(getattr(each, field.name))
    return found


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference relative to the largest value.

    Infinity where shapes or types differ, or values that are not finite.
    """
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return float("inf")
    there = expected.isfinite()
    rest = found[~there], expected[~there]
    if not found[there].isfinite().all() or not torch.equal(*(x.nan_to_num(0.0) for x in rest)):
        return float("inf")
    a, b = found[there].double(), expected[there].double()
    if not b.numel():
        return 0.0
    return float((a - b).abs().max() / b.abs().max().clamp_min(1e-30))


def relative_square(found: object, expected: object) -> float:
    """The mean square of the difference of results, as a share of that of the expected ones."""
    pairs = list(zip(tree_leaves(found), tree_leaves(expected), strict=True))
    size = sum(float(b.square().sum()) for _, b in pairs) or 1.0
    return sum(float((a - b).square().sum()) for a, b in pairs) / size
