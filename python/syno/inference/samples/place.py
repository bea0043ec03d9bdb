"""Places of samples in tensors, and calls of operators that have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from syno.inference.trace import batched_inputs


@dataclass(frozen=True)
class SamplePlace:
    """The element i of dimension `dim` belongs to the sample (i / inner) mod batch.

    That dimension has `outer` times the batch times `inner` elements.
    """

    dim: int
    outer: int = 1
    inner: int = 1

    def at(self, dim: int) -> SamplePlace:
        """The same in another dimension."""
        return SamplePlace(dim, self.outer, self.inner)


class Meets(Exception):
    """Why samples may meet."""


@dataclass(frozen=True)
class OperatorCall:
    """A call of an operator of PyTorch. places: of the tensors among its arguments, of which only
    those that have samples; given: its arguments by their names in the schema."""

    node: fx.Node
    places: dict[fx.Node, SamplePlace]
    given: dict[str, Any]
    batch: torch.SymInt

    @property
    def shape(self) -> list[int | torch.SymInt]:
        """The shape of its result, or of the first one."""
        value = self.node.meta["val"]
        return list((value[0] if isinstance(value, (list, tuple)) else value).shape)

    def first(self) -> tuple[fx.Node, SamplePlace]:
        """The first argument, which must be the only one with samples."""
        x = self.node.args[0]
        if not isinstance(x, fx.Node) or list(self.places) != [x]:
            raise Meets("another argument than the first one has samples")
        return x, self.places[x]


def batch_of(graph: fx.GraphModule) -> torch.SymInt:
    """The size of the batch of a graph that takes any."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    batch: torch.SymInt = inputs[batched_inputs(graph).index(True)].meta["val"].shape[0]
    return batch


def called(node: fx.Node, values: Mapping[fx.Node, Any]) -> Any:
    """What a call gives for these values of its arguments."""
    args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda each: values[each])
    return node.target(*args, **kwargs)  # type: ignore[operator]


def factor(size: int | torch.SymInt, batch: torch.SymInt) -> int:
    """The factor k of a size k * batch, 0 for a number."""
    if isinstance(size, int):
        return 0
    ratio = size.node.expr / batch.node.expr
    if not ratio.is_Integer:
        raise Meets(f"a dimension has the size {size}")
    return int(ratio)


def number(size: int | torch.SymInt, batch: torch.SymInt) -> int:
    """A size of a dimension without the batch: what it is a multiple of the batch by."""
    return size if isinstance(size, int) else factor(size, batch)
