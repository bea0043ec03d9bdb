"""BatchNorms behind convolutions and linear layers of PyTorch become part of their weights."""

from __future__ import annotations

import torch
from torch import fx

from syno.inference.operators import CONVOLUTIONS, LINEAR_LAYERS, TRANSPOSED
from syno.inference.passes.clean import constants, only_user
from syno.inference.passes.epilogues import batch_norm_of, result_of

_aten = torch.ops.aten


def fold_batch_norms(graph: fx.GraphModule) -> int:
    """Multiply the weights of a layer with the factors of the BatchNorm that alone uses its output.

    Layers whose weight or bias is no constant, and BatchNorms behind anything else, stay as they
    are. Returns how many became part of a layer.
    """
    held = constants(graph)
    count = 0
    for node in list(graph.graph.nodes):
        if node.op == "call_function" and _folded(graph, node, held, count):
            count += 1
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return count


def _folded(
    graph: fx.GraphModule, node: fx.Node, held: dict[str, torch.Tensor], number: int
) -> bool:
    if node.target not in CONVOLUTIONS and node.target not in LINEAR_LAYERS:
        return False
    if node.target is _aten.addmm.default or "bias" in node.kwargs or "weight" in node.kwargs:
        return False
    # Channels are dimension 1 of what a convolution computes; of a linear layer only for a matrix.
    if node.target in LINEAR_LAYERS and node.meta["val"].dim() != 2:
        return False
    user = only_user(node)
    found = None if user is None else batch_norm_of(user, held)
    value = None if user is None else result_of(user)
    if user is None or found is None or value is None:
        return False
    weight_node, *rest = node.args[1:]
    bias_node = rest[0] if rest else None
    weight = _constant(weight_node, held)
    bias = _constant(bias_node, held)
    scale, shift = found
    if weight is None or (bias_node is not None and bias is None):
        return False
    if bias is not None:
        shift = shift + bias * scale
    groups = int(_argument(node, 6, "groups", 1)) if node.target in TRANSPOSED else 0
    arguments = [
        node.args[0],
        _added(graph, node, f"syno_folded_{number}_weight", _scaled(weight, scale, groups)),
        _added(graph, node, f"syno_folded_{number}_bias", shift),
        *rest[1:],
    ]
    node.args = tuple(arguments)
    value.replace_all_uses_with(node)
    graph.graph.erase_node(value)
    graph.graph.erase_node(user)
    return True


def _constant(node: object, held: dict[str, torch.Tensor]) -> torch.Tensor | None:
    return held.get(node.name) if isinstance(node, fx.Node) else None


def _argument(node: fx.Node, place: int, name: str, default: int) -> int:
    found = node.args[place] if len(node.args) > place else node.kwargs.get(name, default)
    assert isinstance(found, int)
    return found


def _scaled(weight: torch.Tensor, scale: torch.Tensor, groups: int) -> torch.Tensor:
    """A weight [outputs, ...], or with groups [inputs, outputs / groups, ...], with each output
    multiplied by its factor."""
    if groups == 0:
        return (weight.double() * scale.double().view(-1, *[1] * (weight.dim() - 1))).float()
    parts = weight.double().unflatten(0, (groups, -1))  # [g, inputs / g, outputs / g, ...]
    factors = scale.double().view(groups, 1, -1, *[1] * (weight.dim() - 2))
    return (parts * factors).flatten(0, 1).float()


def _added(graph: fx.GraphModule, node: fx.Node, name: str, value: torch.Tensor) -> fx.Node:
    """A constant in front of a node."""
    graph.register_buffer(name, value.detach().contiguous())
    with graph.graph.inserting_before(node):
        made = graph.graph.get_attr(name)
    made.meta = {"val": value, "nn_module_stack": node.meta.get("nn_module_stack")}
    return made
