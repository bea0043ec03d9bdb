"""GELU by its formula with tanh, as transformers writes it, becomes one node."""

from __future__ import annotations

import math

import torch
from torch import fx

_aten = torch.ops.aten
_ROOT, _CUBE = math.sqrt(2 / math.pi), 0.044715


def fuse_gelu(graph: fx.GraphModule) -> None:
    """Puts gelu(x, approximate="tanh") for 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    for node in list(graph.graph.nodes):
        x = _argument_of_gelu(node)
        if x is None:
            continue
        with graph.graph.inserting_before(node):
            made = graph.graph.call_function(_aten.gelu.default, (x,), {"approximate": "tanh"})
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _argument_of_gelu(node: fx.Node) -> fx.Node | None:
    for half, one in _both(node, _aten.mul.Tensor):
        x, tanh = _with(half, _aten.mul.Tensor, 0.5), _with(one, _aten.add.Tensor, 1.0)
        if x is None or tanh is None or tanh.target is not _aten.tanh.default:
            continue
        sum_ = _with(tanh.args[0], _aten.mul.Tensor, _ROOT)
        for own, more in _both(sum_, _aten.add.Tensor):
            cube = _with(more, _aten.mul.Tensor, _CUBE)
            if own is x and cube is not None and _is_cube(cube, x):
                return x
    return None


def _is_cube(node: fx.Node, x: fx.Node) -> bool:
    return node.target is _aten.pow.Tensor_Scalar and node.args == (x, 3)


def _both(node: object, target: object) -> list[tuple[fx.Node, fx.Node]]:
    """The two operands of a node of this operator, in both orders."""
    if not isinstance(node, fx.Node) or node.target is not target or node.kwargs:
        return []
    first, second = node.args
    if not isinstance(first, fx.Node) or not isinstance(second, fx.Node):
        return []
    return [(first, second), (second, first)]


def _with(node: object, target: object, value: float) -> fx.Node | None:
    """The other operand of a node that takes this number."""
    if not isinstance(node, fx.Node) or node.target is not target or node.kwargs:
        return None
    first, second = node.args
    if isinstance(second, (int, float)) and math.isclose(second, value, rel_tol=1e-6):
        return first if isinstance(first, fx.Node) else None
    return None
