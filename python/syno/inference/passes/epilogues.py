"""What follows a layer becomes part of it: BatchNorm, bias, residual, activation."""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch
from torch import fx

from syno.inference.carriers import carriers
from syno.inference.layer import TracedLayer
from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.clean import are_alike, constants, only_user
from syno.inference.passes.layers import layers_of
from syno.inference.trace import module_name

_aten = torch.ops.aten
_BATCH_NORM = _aten._native_batch_norm_legit_no_training.default
_SIMPLE: dict[object, str] = {
    _aten.relu.default: "relu",
    _aten.relu6.default: "relu6",
    _aten.silu.default: "silu",
    _aten.hardswish.default: "hardswish",
    _aten.sigmoid.default: "sigmoid",
    _aten.tanh.default: "tanh",
    _aten.hardsigmoid.default: "hardsigmoid",
}
# Operators that only move elements, or drop some.
_MOVES = (_aten.reshape.default, _aten.permute.default, _aten.slice.Tensor)

# The names of the bounds of operators that may be ReLU6.
_LIMITS: dict[object, tuple[str, str]] = {
    _aten.hardtanh.default: ("min_val", "max_val"),
    _aten.clamp.default: ("min", "max"),
    _aten.clip.default: ("min", "max"),
}
# Operators that may be an activation; which one depends on their arguments.
ACTIVATIONS = (*_SIMPLE, _aten.gelu.default, *_LIMITS)


def activation_of(node: fx.Node) -> str | None:
    """The activation, as an epilogue names it, that a node computes; None if it is none."""
    if node.op != "call_function":
        return None
    if node.target is _aten.gelu.default:
        kind = NodeArguments(node)["approximate"]
        return {"none": "gelu", "tanh": "gelu_tanh"}.get(str(kind))
    if node.target in _LIMITS:
        given = NodeArguments(node)
        limits = tuple(given[name] for name in _LIMITS[node.target])
        return "relu6" if limits == (0, 6) else None
    return _SIMPLE.get(node.target)


def is_batch_norm(node: fx.Node) -> bool:
    """Whether a node is a BatchNorm with statistics that are given."""
    return node.op == "call_function" and node.target is _BATCH_NORM


def result_of(batch_norm: fx.Node) -> fx.Node | None:
    """The node of what a BatchNorm gives, where that alone is used, and once."""
    value = only_user(batch_norm)
    if value is None or value.target is not operator.getitem or value.args[1] != 0:
        return None
    return value


def batch_norm_of(
    node: fx.Node, held: dict[str, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Factor and summand of each channel, where a node is a BatchNorm with constant statistics."""
    if not is_batch_norm(node):
        return None
    _, weight, bias, mean, variance, _, epsilon = node.args
    nodes = (weight, bias, mean, variance)
    values = [held.get(n.name) if isinstance(n, fx.Node) else None for n in nodes]
    mean_, variance_ = values[2:]
    if mean_ is None or variance_ is None:
        return None
    scale = (variance_.double() + float(epsilon)).rsqrt()  # type: ignore[arg-type]
    if weight is not None:
        if values[0] is None:
            return None
        scale = scale * values[0].double()
    shift = -mean_.double() * scale
    if bias is not None:
        if values[1] is None:
            return None
        shift = shift + values[1].double()
    return scale.float(), shift.float()


def fold_epilogues(graph: fx.GraphModule) -> None:
    """Takes into every layer what follows it, as long as nothing else uses what is between."""
    held = constants(graph)
    for node, layer in layers_of(graph).items():
        last = node
        while (following := _absorbed(graph, last, layer, held)) is not None:
            last = following
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _absorbed(
    graph: fx.GraphModule, node: fx.Node, layer: TracedLayer, held: dict[str, torch.Tensor]
) -> fx.Node | None:
    """The call of the layer with the next node in it; None where that cannot be part of it."""
    user = only_user(node)
    if user is None or layer.parts.activation:
        return None
    activation = activation_of(user)
    if activation is not None:
        layer.parts.activation = activation
        layer.parts.sources.append(module_name(user))
        return _joined(graph, node, user)
    if user.target in _MOVES:
        _take_through(graph, user, layer)
        return None
    if layer.parts.residual:
        return None
    for step in (_batch_norm, _affine, _residual):
        found = step(graph, node, user, layer, held)
        if found is not None:
            return found
    return None


def _take_through(graph: fx.GraphModule, move: fx.Node, layer: TracedLayer) -> None:
    """Takes an activation that follows moves of elements."""
    user = only_user(move)
    while user is not None and user.target in _MOVES:
        move, user = user, only_user(user)
    activation = None if user is None else activation_of(user)
    if user is None or activation is None:
        return
    layer.parts.activation = activation
    layer.parts.sources.append(module_name(user))
    user.replace_all_uses_with(move)
    graph.graph.erase_node(user)


def _joined(
    graph: fx.GraphModule, node: fx.Node, user: fx.Node, residual: fx.Node | None = None
) -> fx.Node:
    """The call of the layer where its user was."""
    more = node.args[1:] if residual is None else (residual,)
    with graph.graph.inserting_before(user):
        made = graph.graph.call_module(str(node.target), (node.args[0], *more))
    made.meta = dict(user.meta)
    made.meta["nn_module_stack"] = node.meta.get("nn_module_stack")
    user.replace_all_uses_with(made)
    graph.graph.erase_node(user)
    graph.graph.erase_node(node)
    return made


def _batch_norm(
    graph: fx.GraphModule,
    node: fx.Node,
    user: fx.Node,
    layer: TracedLayer,
    held: dict[str, torch.Tensor],
) -> fx.Node | None:
    found = batch_norm_of(user, held)
    if found is None or layer.channel != 1 or len(found[0]) != layer.channels:
        return None
    value = result_of(user)
    if value is None:
        return None
    _multiply(layer, found[0])
    _add(layer, found[1])
    layer.parts.sources.append(module_name(user))
    value.replace_input_with(user, node)
    graph.graph.erase_node(user)
    return _joined(graph, node, value)


def _affine(
    graph: fx.GraphModule,
    node: fx.Node,
    user: fx.Node,
    layer: TracedLayer,
    held: dict[str, torch.Tensor],
) -> fx.Node | None:
    """A product with constants, or a sum, of each channel."""
    if user.kwargs or len(user.args) != 2:
        return None
    effects: dict[object, Callable[[TracedLayer, torch.Tensor], None]] = {
        _aten.mul.Tensor: _multiply,
        _aten.add.Tensor: _add,
    }
    effect = effects.get(user.target)
    other = user.args[1] if user.args[0] is node else user.args[0]
    if effect is None:
        return None
    if isinstance(other, fx.Node):
        value = held.get(other.name)
        values = None if value is None else _each_channel(value, node, layer)
    elif isinstance(other, (int, float)):
        values = torch.full([layer.channels], float(other))
    else:
        values = None
    if values is None:
        return None
    effect(layer, values)
    layer.parts.sources.append(module_name(user))
    return _joined(graph, node, user)


def _each_channel(value: torch.Tensor, node: fx.Node, layer: TracedLayer) -> torch.Tensor | None:
    """One value for each channel, where broadcasting does no more than that."""
    rank = node.meta["val"].dim()
    if value.dim() > rank or value.dtype != torch.float32:
        return None
    shape = [1] * (rank - value.dim()) + list(value.shape)
    flat = value.flatten()
    if len(flat) == 1:
        return flat.expand(layer.channels).contiguous()
    return flat if shape[layer.channel] == len(flat) == layer.channels else None


def _residual(
    graph: fx.GraphModule,
    node: fx.Node,
    user: fx.Node,
    layer: TracedLayer,
    held: dict[str, torch.Tensor],
) -> fx.Node | None:
    if user.target is not _aten.add.Tensor or user.kwargs or len(user.args) != 2:
        return None
    other = user.args[1] if user.args[0] is node else user.args[0]
    if not isinstance(other, fx.Node) or other.name in held or not are_alike(node, other):
        return None
    layer.parts.residual = True
    layer.parts.sources.append(module_name(user) + " (sum)")
    return _joined(graph, node, user, other)


def _multiply(layer: TracedLayer, scale: torch.Tensor) -> None:
    """Multiplies each channel: a weight that carries the channel, where there is one."""
    parts = layer.parts
    if parts.bias is not None:
        parts.bias = parts.bias * scale
    found = carriers(layer.computation, layer.channel) if parts.scale is None else {}
    if not found:
        parts.scale = scale if parts.scale is None else parts.scale * scale
        return
    chosen = min(found, key=lambda number: layer.weights[number].numel())
    factor = scale.double()[torch.from_numpy(found[chosen])]
    layer.weights[chosen] = (layer.weights[chosen].double() * factor).float()


def _add(layer: TracedLayer, shift: torch.Tensor) -> None:
    layer.parts.bias = shift if layer.parts.bias is None else layer.parts.bias + shift
