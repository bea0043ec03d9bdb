"""Operators of slots, convolutions and linear layers as layers that are compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from syno.inference.layer import CONVOLUTION, LINEAR, SLOT, Computation, Layer
from syno.inference.operators import CONVOLUTIONS, LINEAR_LAYERS, Found, NotCovered, as_operator
from syno.inference.passes.clean import constants
from syno.inference.trace import SLOT as SLOT_CALL
from syno.inference.trace import Traced, TracedPack, module_name, shape_of

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
                node.meta[WHY] = str(reason)
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
        value = _longer(source.meta["val"], found.pad)
        source = _inserted(graph, node, _aten.constant_pad_nd.default, source, amounts, value)
    if found.rows:
        rows = -1 if batch else source.meta["val"].numel() // math.prod(shape[1:])
        value = source.meta["val"].reshape(rows, *shape[1:])
        source = _inserted(graph, node, _aten.reshape.default, source, [rows, *shape[1:]], value)
    outside = shape_of(node)
    made = _replace(graph, node, layer, source)
    if not found.rows:
        return
    users = list(made.users)
    value = made.meta["val"]
    if found.pad:
        value = _longer(value, found.pad)
    with graph.graph.inserting_after(made):
        sizes = [-1 if batch else outside[0], *value.shape[1:]]
        back = graph.graph.call_function(_aten.reshape.default, (made, sizes))
    back.meta = made.meta | {"val": value}
    made.meta["val"] = value.reshape(-1 if batch else rows, *operator.shapes(binding).output[1:])
    for axis, more in enumerate(found.pad, 2):
        if more:
            with graph.graph.inserting_after(back):
                arguments = (back, axis, 0, int(outside[axis]))
                cut = graph.graph.call_function(_aten.slice.Tensor, arguments)
            value = value.narrow(axis, 0, int(outside[axis]))
            cut.meta = back.meta | {"val": value}
            back = cut
    for user in users:
        user.replace_input_with(made, back)


def _longer(value: torch.Tensor, pad: Sequence[int]) -> torch.Tensor:
    """What a map is with so many elements more at the end of each spatial dimension.

    `constant_pad_nd` would give a batch of any size the size of the example.
    """
    lead, sizes = value.shape[:2], value.shape[2:]
    return value.new_empty([*lead, *(n + more for n, more in zip(sizes, pad, strict=True))])


def _inserted(
    graph: fx.GraphModule,
    node: fx.Node,
    target: Callable[..., torch.Tensor],
    source: fx.Node,
    argument: list[int],
    value: torch.Tensor,
) -> fx.Node:
    with graph.graph.inserting_before(node):
        made = graph.graph.call_function(target, (source, argument))  # type: ignore[arg-type]
    made.meta = {"val": value, "nn_module_stack": node.meta.get("nn_module_stack")}
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
