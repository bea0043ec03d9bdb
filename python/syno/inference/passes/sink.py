"""Moves of elements behind a layer go behind what is computed for each element."""

from __future__ import annotations

import torch
from torch import fx
from torch.fx.node import Argument

from syno.inference.passes.clean import are_alike, only_user
from syno.inference.passes.epilogues import activation_of, is_batch_norm, result_of
from syno.inference.passes.layers import layers_of

_aten = torch.ops.aten


def sink_moves(graph: fx.GraphModule) -> None:
    """Lets a layer whose map is reshaped or cropped meet what follows, to take it in.

    A dilated convolution computes on another shape of its map. What is computed for each element
    or channel - BatchNorm, activations, the sum with a residual - is the same before that.
    """
    for node, layer in layers_of(graph).items():
        last = node
        while layer.channel == 1 and (following := _sunk(graph, last)) is not None:
            last = following
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _sunk(graph: fx.GraphModule, node: fx.Node) -> fx.Node | None:
    """What follows the moves behind a node, computed before them; None where that differs."""
    moves = []
    last, user = node, only_user(node)
    while user is not None and _is_move(user):
        moves.append(user)
        last, user = user, only_user(user)
    if not moves or user is None:
        return None
    made: fx.Node | None = None
    end = user
    with graph.graph.inserting_before(user):
        if activation_of(user) is not None:
            made = _again(graph, user, {last: node})
        elif is_batch_norm(user):
            value = result_of(user)
            if value is None:
                return None
            made = _again(graph, value, {user: _again(graph, user, {last: node})})
            end = value
        elif user.target is _aten.add.Tensor and _is_reshape(moves) and not user.kwargs:
            other = user.args[1] if user.args[0] is last else user.args[0]
            if not isinstance(other, fx.Node) or other is last or not are_alike(other, last):
                return None
            shape = node.meta["val"].shape
            sizes = [n if isinstance(n, int) else -1 for n in shape]
            inner = graph.graph.call_function(_aten.reshape.default, (other, sizes))
            inner.meta = {**other.meta, "val": other.meta["val"].reshape(shape)}
            made = _again(graph, user, {last: node, other: inner})
        if made is None:
            return None
        moved = made
        for move in moves:
            moved = _again(graph, move, {move.args[0]: moved})
    end.replace_all_uses_with(moved)
    for gone in (end, *([user] if end is not user else []), *reversed(moves)):
        graph.graph.erase_node(gone)
    return made


def _is_reshape(moves: list[fx.Node]) -> bool:
    """Whether moves give another shape to all elements, in which another tensor can be given."""
    return len(moves) == 1 and moves[0].target is _aten.reshape.default


def _is_move(node: fx.Node) -> bool:
    """Whether a node only reshapes or crops the dimensions behind batch and channels."""
    if node.target is _aten.slice.Tensor:
        return int(node.args[1]) >= 2  # type: ignore[arg-type]
    if node.target is not _aten.reshape.default:
        return False
    source = node.args[0]
    assert isinstance(source, fx.Node)
    before, after = source.meta["val"].shape, node.meta["val"].shape
    return len(before) > 1 and len(after) > 1 and list(before[:2]) == list(after[:2])


def _again(graph: fx.GraphModule, node: fx.Node, changed: dict[object, fx.Node]) -> fx.Node:
    """A copy of a call with other arguments."""

    def replaced(argument: Argument) -> Argument:
        return changed.get(argument, argument) if isinstance(argument, fx.Node) else argument

    args = tuple(replaced(each) for each in node.args)
    made = graph.graph.call_function(node.target, args, dict(node.kwargs))  # type: ignore[arg-type]
    values = fx.node.map_arg(args, lambda each: each.meta["val"])
    named = fx.node.map_arg(made.kwargs, lambda each: each.meta["val"])
    made.meta = {**node.meta, "val": node.target(*values, **named)}  # type: ignore[operator]
    return made
