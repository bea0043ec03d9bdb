"""What has no effect at inference goes; what depends on weights alone becomes a constant."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import fx, nn
from torch.utils._pytree import tree_map_only

from syno.inference.decompose import draws
from syno.inference.trace import attribute, outline_of

_aten = torch.ops.aten
# Operators that give their first argument, always or in evaluation mode.
IDENTITIES = (
    _aten.dropout.default,
    _aten.feature_dropout.default,
    _aten.alias.default,
    _aten.detach.default,
    _aten.lift_fresh_copy.default,
    _aten.clone.default,
    _aten.contiguous.default,
)
_WRITES = (_aten.copy.default, _aten.slice_scatter.default)
_CHECKS = (_aten._assert_tensor_metadata.default, _aten._assert_scalar.default)


def constants(graph: fx.GraphModule) -> dict[str, torch.Tensor]:
    """The tensors of the graph that do not depend on its input, by the name of their node."""
    found = {}
    for node in graph.graph.nodes:
        if node.op == "get_attr":
            value = attribute(graph, str(node.target))
            if isinstance(value, torch.Tensor):
                found[node.name] = value.detach()
    return found


def remove_identities(graph: fx.GraphModule) -> None:
    """Dropout, copies and checks go; so do nodes that nothing uses."""
    for node in list(graph.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in _CHECKS:
            graph.graph.erase_node(node)
        elif node.target in IDENTITIES and isinstance(node.args[0], fx.Node):
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
        elif node.target in (_aten.view.default, _aten._unsafe_view.default):
            node.target = _aten.reshape.default  # its input may be no copy any more
    graph.graph.eliminate_dead_code()


def are_alike(one: fx.Node, other: fx.Node) -> bool:
    """Whether two nodes give tensors of one shape and type."""
    mine, its = one.meta["val"], other.meta["val"]
    return list(mine.shape) == list(its.shape) and mine.dtype == its.dtype


def remove_writes(graph: fx.GraphModule) -> None:
    """A tensor all of which is written goes, and what is written there takes its place."""
    for node in graph.graph.nodes:
        if node.target not in _WRITES:
            continue
        whole, part = node.args[:2]
        if are_alike(whole, part):
            node.replace_all_uses_with(part)
    graph.graph.eliminate_dead_code()
    graph.recompile()


def fold_constants(graph: fx.GraphModule) -> None:
    """Computes what depends on weights and numbers alone."""
    values: dict[fx.Node, object] = {}
    held = constants(graph)
    for node in list(graph.graph.nodes):
        if node.op == "get_attr" and node.name in held:
            values[node] = held[node.name]
            node.meta["val"] = outline_of(graph, held[node.name])
        elif _is_foldable(node) and all(each in values for each in node.all_input_nodes):
            args, kwargs = tree_map_only(
                fx.Node, lambda each: values[each], (node.args, dict(node.kwargs))
            )
            values[node] = node.target(*args, **kwargs)
    made = [node for node in values if node.op == "call_function"]
    for number, node in enumerate(made):
        value = values[node]
        used = [user for user in node.users if user not in values]
        if not used or not isinstance(value, torch.Tensor):
            continue
        name = f"syno_constant_{number}"
        graph.register_buffer(name, value.detach().contiguous())
        with graph.graph.inserting_before(node):
            constant = graph.graph.get_attr(name)
        constant.meta = {
            "val": outline_of(graph, value),
            "nn_module_stack": node.meta.get("nn_module_stack"),
        }
        node.replace_all_uses_with(constant)
    graph.graph.eliminate_dead_code()


def _is_foldable(node: fx.Node) -> bool:
    if node.op != "call_function" or draws(node):
        return False
    return getattr(node.target, "namespace", "") == "aten" or node.target.__name__ == "getitem"  # type: ignore[union-attr]


def merge_equal(graph: fx.GraphModule) -> None:
    """Computes the same value once: two slots often pool the same map."""
    seen: dict[object, fx.Node] = {}
    for node in list(graph.graph.nodes):
        if not _is_foldable(node):
            continue
        key = (node.target, _frozen(node.args), _frozen(tuple(sorted(node.kwargs.items()))))
        first = seen.setdefault(key, node)
        if first is not node:
            node.replace_all_uses_with(first)
            graph.graph.erase_node(node)


def merge_sizes(graph: fx.GraphModule) -> None:
    """Computes a size once, so that nothing reads a layer for what is known before it."""
    seen: dict[object, fx.Node] = {}
    for node in list(graph.graph.nodes):
        size = node.meta.get("val")
        if not isinstance(size, torch.SymInt):
            continue
        first = seen.setdefault(size.node.expr, node)
        if first is not node and node.op == "call_function":
            node.replace_all_uses_with(first)
            graph.graph.erase_node(node)


def _frozen(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(each) for each in value)
    return (type(value), value)


def add_module(
    graph: fx.GraphModule, node: fx.Node, name: str, module: nn.Module, *inputs: fx.Node
) -> fx.Node:
    """Add a module under a name, and its call in front of a node, as of the same module there."""
    graph.add_module(name, module)
    with graph.graph.inserting_before(node):
        made = graph.graph.call_module(name, inputs)
    made.meta = dict(node.meta)
    return made


def put_module(
    graph: fx.GraphModule, node: fx.Node, name: str, module: nn.Module, *inputs: fx.Node
) -> None:
    """Add a module under a name, and its call in place of a node."""
    node.replace_all_uses_with(add_module(graph, node, name, module, *inputs))
    graph.graph.erase_node(node)


def only_user(node: fx.Node) -> fx.Node | None:
    """The node that uses this one, where there is one alone and it does so once."""
    users = list(node.users)
    if len(users) != 1 or sum(each is node for each in _arguments(users[0])) != 1:
        return None
    return users[0]


def _arguments(node: fx.Node) -> Iterator[object]:
    def walk(value: object) -> Iterator[object]:
        if isinstance(value, (list, tuple)):
            for each in value:
                yield from walk(each)
        else:
            yield value

    yield from walk(list(node.args))
    yield from walk(list(node.kwargs.values()))
