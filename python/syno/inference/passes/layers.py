"""Operators of slots, convolutions and linear layers as layers that are compiled."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import fx

from syno.inference.layer import CONVOLUTION, LINEAR, SLOT, Computation, Layer
from syno.inference.operators import CONVOLUTIONS, LINEAR_LAYERS, Found, NotCovered, as_operator
from syno.inference.passes.clean import constants
from syno.inference.trace import SLOT as SLOT_CALL
from syno.inference.trace import Traced, TracedPack, module_name, shape_of

_aten = torch.ops.aten


@dataclass(frozen=True)
class Kept:
    """A layer that stays as it is, and why."""

    name: str
    kind: str
    reason: str


def put_layers(traced: Traced, *, convolutions: bool) -> list[Kept]:
    """Puts a `Layer` in place of every node that can be one, and returns what stays.

    convolutions: also convolutions and linear layers, not only the operators of slots.
    """
    graph, kept = traced.graph, []
    held = constants(graph)
    for node in list(graph.graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is SLOT_CALL:
            found_pack = traced.packs[int(node.args[1])]  # type: ignore[arg-type]
            _replace(graph, node, _slot_layer(found_pack))
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
                continue
            _replace_found(graph, node, found, batch=traced.batch)
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return kept


def _slot_layer(found: TracedPack) -> Layer:
    pack = found.pack
    computation = Computation(pack.operator.text, pack.binding, pack.plan)
    weights = [parameter.detach() for parameter in pack.kernel.parameters()]
    rank = len(pack.operator.shapes(pack.binding).output)
    # Without a slot that says it: channels are dimension 1 of a map, and the last of a sequence.
    channel = (1 if rank == 4 else rank - 1) if found.channel is None else found.channel % rank
    return Layer(found.name, SLOT, computation, weights, channel)


def _replace_found(graph: fx.GraphModule, node: fx.Node, found: Found, *, batch: bool) -> None:
    layer = Layer(
        module_name(node), found.kind, found.computation, found.weights, channel=found.channel
    )
    layer.parts.bias = None if found.bias is None else found.bias.detach()
    source = node.args[1] if node.target is _aten.addmm.default else node.args[0]
    assert isinstance(source, fx.Node)
    operator, binding = found.computation.operator, found.computation.binding
    shape = list(operator.shapes(binding).input)
    if any(found.pad):
        amounts = [n for more in reversed(found.pad) for n in (0, more)]
        source = _inserted(graph, node, _aten.constant_pad_nd.default, source, amounts)
    if found.rows:
        lead = [-1 if batch else 1]
        source = _inserted(graph, node, _aten.reshape.default, source, [*lead, *shape[1:]])
    outside = shape_of(node)
    made = _replace(graph, node, layer, source)
    if found.rows:
        users = list(made.users)
        with graph.graph.inserting_after(made):
            sizes = [-1 if batch else outside[0], *outside[1:]]
            back = graph.graph.call_function(_aten.reshape.default, (made, sizes))
        back.meta = dict(made.meta)
        inner = operator.shapes(binding).output
        made.meta["val"] = made.meta["val"].reshape(-1 if batch else 1, *inner[1:])
        for user in users:
            user.replace_input_with(made, back)


def _inserted(
    graph: fx.GraphModule, node: fx.Node, target: object, source: fx.Node, argument: list[int]
) -> fx.Node:
    with graph.graph.inserting_before(node):
        made = graph.graph.call_function(target, (source, argument))  # type: ignore[arg-type]
    made.meta = {
        "val": target(source.meta["val"], argument),  # type: ignore[operator]
        "nn_module_stack": node.meta.get("nn_module_stack"),
    }
    return made


def _replace(
    graph: fx.GraphModule, node: fx.Node, layer: Layer, source: fx.Node | None = None
) -> fx.Node:
    """Puts the layer in place of the node. `source`: its input, by default that of the node."""
    number = sum(isinstance(module, Layer) for module in graph.children())
    graph.add_module(f"syno_layer_{number}", layer)
    with graph.graph.inserting_before(node):
        made = graph.graph.call_module(f"syno_layer_{number}", (source or node.args[0],))
    made.meta = dict(node.meta)
    node.replace_all_uses_with(made)
    graph.graph.erase_node(node)
    return made


def layers_of(graph: fx.GraphModule) -> dict[fx.Node, Layer]:
    """The calls of layers, in the order of the graph."""
    modules = dict(graph.named_modules())
    found = {}
    for node in graph.graph.nodes:
        if node.op == "call_module":
            module = modules[str(node.target)]
            if isinstance(module, Layer):
                found[node] = module
    return found
