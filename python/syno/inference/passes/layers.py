"""Operators of slots, convolutions and linear layers as layers that are compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from syno.inference.layer import CONVOLUTION, LINEAR, SLOT, Computation, TracedLayer
from syno.inference.operators import CONVOLUTIONS, LINEAR_LAYERS, Found, NotCovered, as_operator
from syno.inference.passes.clean import add_module, constants, put_module
from syno.inference.trace import SLOT as SLOT_CALL
from syno.inference.trace import Traced, TracedOperator, module_name, shape_of

_aten = torch.ops.aten
# The entry of a node's `meta` that says why it is no layer.
WHY = "syno_kept"


@dataclass(frozen=True)
class Kept:
    """A layer that stays as it is, and why."""

    name: str
    kind: str
    reason: str


def put_layers(traced: Traced, *, convolutions: bool) -> list[Kept]:
    """Puts a `TracedLayer` in place of every node that can be one, and returns what stays.

    convolutions: also convolutions and linear layers, not only the operators of slots.
    """
    graph, kept = traced.graph, []
    held = constants(graph)
    for node in list(graph.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is SLOT_CALL:
            operator = traced.layers[int(node.args[1])]  # type: ignore[arg-type]
            source = node.args[0]
            assert isinstance(source, fx.Node)
            put_module(graph, node, _next_name(graph), _slot_layer(operator), source)
        elif node.target in CONVOLUTIONS or node.target in LINEAR_LAYERS:
            kind = CONVOLUTION if node.target in CONVOLUTIONS else LINEAR
            name = module_name(node)
            if not convolutions:
                kept.append(Kept(name, kind, "convolutions=False"))
                continue
            try:
                found = as_operator(node, held, batch=traced.batch)
            except NotCovered as reason:
                kept.append(Kept(name, kind, str(reason)))
                node.meta[WHY] = str(reason)
                continue
            _replace_found(graph, node, found, batch=traced.batch)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return kept


def _slot_layer(found: TracedOperator) -> TracedLayer:
    pack = found.layer
    computation = Computation(pack.operator.text, pack.binding, pack.plan)
    weights = [parameter.detach() for parameter in pack.kernel.parameters()]
    rank = len(pack.operator.shapes(pack.binding).output)
    # Without a slot that says it: channels are dimension 1 of a map, and the last of a sequence.
    channel = (1 if rank == 4 else rank - 1) if found.channel is None else found.channel % rank
    return TracedLayer(found.name, SLOT, computation, weights, channel)


def _replace_found(graph: fx.GraphModule, node: fx.Node, found: Found, *, batch: bool) -> None:
    layer = TracedLayer(
        module_name(node), found.kind, found.computation, found.weights, channel=found.channel
    )
    layer.parts.bias = None if found.bias is None else found.bias.detach()
    operator, binding = found.computation.operator, found.computation.binding
    shape = list(operator.shapes(binding).input)
    source = _fitted(graph, node, found)
    if found.rows:
        rows = -1 if batch else source.meta["val"].numel() // math.prod(shape[1:])
        value = source.meta["val"].reshape(rows, *shape[1:])
        source = _inserted(graph, node, _aten.reshape.default, (source, [rows, *shape[1:]]), value)
    outside, value = shape_of(node), node.meta["val"]
    last = made = add_module(graph, node, _next_name(graph), layer, source)
    if found.maps:
        value = _resized(value, [each.size for each in found.maps])
    made.meta["val"] = value
    if found.rows:
        sizes = [-1 if batch else outside[0], *value.shape[1:]]
        last = _inserted(graph, node, _aten.reshape.default, (last, sizes), value)
        made.meta["val"] = value.reshape(
            -1 if batch else rows, *operator.shapes(binding).output[1:]
        )
    for axis, each in enumerate(found.maps, 2):
        size = int(outside[axis])
        if each.size != size:
            value = value.narrow(axis, each.start, size)
            place = (last, axis, each.start, each.start + size)
            last = _inserted(graph, node, _aten.slice.Tensor, place, value)
    node.replace_all_uses_with(last)
    graph.graph.erase_node(node)


def _fitted(graph: fx.GraphModule, node: fx.Node, found: Found) -> fx.Node:
    """The input of an operator with the zeros that it reads more, without what it does not read."""
    source = found.source
    for axis, each in enumerate(found.maps, 2):
        if each.after < 0:
            value = source.meta["val"]
            size = value.shape[axis] + each.after
            arguments = (source, axis, 0, size)
            value = value.narrow(axis, 0, size)
            source = _inserted(graph, node, _aten.slice.Tensor, arguments, value)
    zeros = [(each.before, max(each.after, 0)) for each in found.maps]
    if not any(map(any, zeros)):
        return source
    amounts = [n for pair in reversed(zeros) for n in pair]
    value = source.meta["val"]
    larger = [n + sum(pair) for n, pair in zip(value.shape[2:], zeros, strict=True)]
    value = _resized(value, larger)
    return _inserted(graph, node, _aten.constant_pad_nd.default, (source, amounts), value)


def _resized(value: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """What a map of these sizes is.

    `constant_pad_nd` would give a batch of any size the size of the example.
    """
    return value.new_empty([*value.shape[:2], *sizes])


def _inserted(
    graph: fx.GraphModule,
    node: fx.Node,
    target: Callable[..., torch.Tensor],
    arguments: tuple[object, ...],
    value: torch.Tensor,
) -> fx.Node:
    """A call in front of a node."""
    with graph.graph.inserting_before(node):
        made = graph.graph.call_function(target, arguments)  # type: ignore[arg-type]
    made.meta = {"val": value, "nn_module_stack": node.meta.get("nn_module_stack")}
    return made


def _next_name(graph: fx.GraphModule) -> str:
    """The name of the next layer in the graph."""
    return f"syno_layer_{sum(isinstance(module, TracedLayer) for module in graph.children())}"


def layers_of(graph: fx.GraphModule) -> dict[fx.Node, TracedLayer]:
    """The calls of layers, in the order of the graph."""
    modules = dict(graph.named_modules())
    found = {}
    for node in graph.graph.nodes:
        if node.op == "call_module":
            module = modules[str(node.target)]
            if isinstance(module, TracedLayer):
                found[node] = module
    return found
