"""Reshapes that say nothing: of a reshape, and to the shape that is there."""

from __future__ import annotations

import torch
from torch import fx

_aten = torch.ops.aten
_RESHAPES = (_aten.reshape.default, _aten.view.default, _aten._unsafe_view.default)


def merge_reshapes(graph: fx.GraphModule) -> None:
    """A reshape of a reshape becomes one; one to the shape that is there goes."""
    for node in list(graph.graph.nodes):
        if node.target not in _RESHAPES:
            continue
        source = node.args[0]
        while source.target in _RESHAPES:
            source = source.args[0]
        node.replace_input_with(node.args[0], source)
        if list(source.meta["val"].shape) == list(node.meta["val"].shape):
            node.replace_all_uses_with(source)
    graph.graph.eliminate_dead_code()
    graph.recompile()
