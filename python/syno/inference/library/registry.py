"""Which code computes a node of a graph in the network library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import fx

from syno.inference.library.builder import Builder
from syno.inference.library.program import Value
from syno.inference.node_arguments import NodeArguments

# The value of a node by the builder, the node and its arguments; this adds steps.
Compute = Callable[[Builder, fx.Node, NodeArguments], Value]


@dataclass(frozen=True)
class Lowering:
    """How nodes of an operator are computed.

    compute: gives the value; of an operator with several results, the first of them. ids: whether
    it reads token ids; truth: whether it gives truth values; empty: whether it takes tensors
    without elements.
    """

    compute: Compute
    ids: bool = False
    truth: bool = False
    empty: bool = False


# By the operator of torch.
CODE: dict[object, Lowering] = {}


def code(
    *targets: object, ids: bool = False, truth: bool = False, empty: bool = False
) -> Callable[[Compute], Compute]:
    """Decorator of the function that computes nodes of these operators; see `Lowering`."""

    def register(function: Compute) -> Compute:
        for target in targets:
            CODE[target] = Lowering(function, ids, truth, empty)
        return function

    return register


def overloads(name: str, *names: str) -> list[object]:
    """The operators of ATen of a name such as "add", with these overloads."""
    packet = getattr(torch.ops.aten, name)
    return [getattr(packet, each) for each in names or ("default",)]
