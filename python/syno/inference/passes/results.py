"""Results of a network have memory of their own where the network gives it to them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import fx
from torch.utils._pytree import tree_map_only

_aten = torch.ops.aten


@dataclass(frozen=True)
class Origins:
    """Of each result the node whose memory it may be, in the graph as it was traced. Names alone
    count: passes put other nodes in their places."""

    names: list[str]
    inputs_and_weights: set[str]


def origins(graph: fx.GraphModule) -> Origins:
    """Where the memory of the results of a graph comes from."""
    roots = [_root(node) for node in _results(graph)]
    held = {root.name for root in roots if root.op in ("placeholder", "get_attr")}
    return Origins([root.name for root in roots], held)


def separate_results(graph: fx.GraphModule, before: Origins) -> None:
    """Copies a result that passes have made an alias of an input, a weight or another result.

    Whoever calls the network may change what it returns.
    """
    first: dict[fx.Node, str] = {}
    numbers: dict[fx.Node, list[int]] = {}
    for number, result in enumerate(_results(graph)):
        root, name = _root(result), before.names[number]
        other = first.setdefault(root, name) != name
        outside = root.op in ("placeholder", "get_attr") and name not in before.inputs_and_weights
        if other or outside:
            numbers.setdefault(result, []).append(number)
    if not numbers:
        return
    output = graph.graph.output_node()
    count = iter(range(len(before.names)))

    def own(node: fx.Node) -> fx.Node:
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return node
        if next(count) not in numbers.get(node, ()):
            return node
        with graph.graph.inserting_before(output):
            made = graph.graph.call_function(_aten.clone.default, (node,))
        made.meta = dict(node.meta)
        return made

    output.args = tree_map_only(fx.Node, own, output.args)
    graph.recompile()


def _results(graph: fx.GraphModule) -> list[fx.Node]:
    """The tensors that a graph returns, in order; one may stand there several times."""
    found: list[fx.Node] = []
    fx.node.map_arg(graph.graph.output_node().args, found.append)  # type: ignore[arg-type]
    return [node for node in found if isinstance(node.meta.get("val"), torch.Tensor)]


def _root(node: fx.Node) -> fx.Node:
    """The node whose memory a tensor may be."""
    while node.op == "call_function":
        schema = getattr(node.target, "_schema", None)
        aliased = schema is None or any(a.alias_info is not None for a in schema.arguments)
        source = next(iter(node.all_input_nodes), None)
        if not aliased or source is None:
            return node
        node = source
    return node
