"""Tensors that are made of parts of others: joined, padded, repeated, shifted and written into."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.codes import ROUND, WORD, codes_of, inside
from syno.inference.library import program as memory
from syno.inference.library.builder import Builder
from syno.inference.library.program import Buffer, Value, number
from syno.inference.library.registry import code as _code
from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.clean import only_user
from syno.inference.trace import module_name

_aten = torch.ops.aten


@_code(_aten.cat.default, _aten.concat.default, _aten.concatenate.default, empty=True)
def _cat(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    parts = build.alike(given["tensors"])
    # A part without elements may have another rank.
    return _joined(build, node, [part for part in parts if part.view.numel()], given["dim"])


@_code(_aten.stack.default)
def _stack(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    parts = build.alike(given["tensors"])
    dim = given["dim"] % (parts[0].view.dim() + 1)
    return _joined(build, node, [Value(p.buffer, p.view.unsqueeze(dim)) for p in parts], dim)


def _joined(build: Builder, node: fx.Node, values: Sequence[Value], dimension: int) -> Value:
    shape = node.meta["val"].shape
    codes, order = None, None
    if values:
        codes, order = values[0].codes, build.order_of(node, values[0])
    y = build.program.new(shape, codes=codes, order=order)
    begin = 0
    for place, value in enumerate(values):
        size = value.shape[dimension]
        slot = Value(y.buffer, y.view.narrow(dimension, begin, size))
        begin += size
        if slot.contiguous and codes is None:
            _place(y.buffer, int(slot.view.storage_offset()), values[place:])
            if value.buffer.root is y.buffer and value.buffer.place == slot.view.storage_offset():
                continue
        build.map(slot, [value], "a", module_name(node))
    return y


def _place(joined: Buffer, offset: int, values: Sequence[Value]) -> None:
    """Makes the first tensor be computed in the joined one, where it has memory of its own.

    Or the joined tensor of an earlier step, which the first tensors are the parts of.
    """
    root = values[0].buffer.root
    if root.kind != memory.ARENA or root is joined:
        return
    filled = 0
    for value in values:
        if not value.is_whole or value.buffer.root is not root or value.buffer.place != filled:
            break
        filled += value.buffer.size
    if filled == root.size:
        root.put_into(joined, offset)


@_code(_aten.constant_pad_nd.default, _aten.pad.default)
def _pad(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    mode = given.get("mode", "constant")
    value = given["value"] or 0.0
    words = _words_of_channels(build, node, given["self"], given["pad"])
    if words is not None and value == 0 and mode == "constant":
        return words
    x = build.stored(given["self"])
    if mode != "constant" or value != 0:  # of codes there is one for zero
        x = build.get(given["self"])
    pairs = list(zip(given["pad"][0::2], given["pad"][1::2], strict=True))
    sides = [(-1 - i, before, after) for i, (before, after) in enumerate(pairs)]
    inner = x.view
    for dim, before, after in sides:  # what is negative is cut off
        start, end = max(-before, 0), inner.shape[dim] - max(-after, 0)
        inner = inner.narrow(dim, start, end - start)
    kept = Value(x.buffer, inner)
    sides = [(dim, max(before, 0), max(after, 0)) for dim, before, after in sides]
    if not any(before or after for _, before, after in sides):
        return kept
    shape = node.meta["val"].shape
    y = build.program.new(shape, codes=x.codes, order=build.order_of(node, x))
    middle = y.view
    for dim, before, _ in sides:
        middle = middle.narrow(dim, before, inner.shape[dim])
    if mode == "constant":
        what = "zeros" if value == 0 else "padding"
        build.map(y, [], f"splat({number(value)})", f"{module_name(node)} ({what})")
    build.map(Value(y.buffer, middle), [kept], "a", f"{module_name(node)} (padded)")
    if mode != "constant":
        _fill(build, node, y, sides, mode)
    return y


def _words_of_channels(
    build: Builder, node: fx.Node, source: fx.Node, pad: Sequence[int]
) -> Value | None:
    """A map of less than four channels and zeros as words of four codes, where these are wanted."""
    user, x, shape = only_user(node), build.stored(source), list(node.meta["val"].shape)
    wanted = [*[0] * 2 * (len(shape) - 2), 0, WORD - x.shape[1] if len(shape) > 2 else 0]
    if user is None or user.target is not ROUND or list(pad) != wanted or shape[0] != 1:
        return None
    if x.codes is not None or not x.contiguous or len(x.shape) != len(shape):
        return None
    codes, pixels = codes_of(user)[1], math.prod(shape[2:])
    y = build.program.new(shape, codes=codes, order=inside(len(shape), 1))

    def step(at: memory.Address) -> str:
        return f"words_of_channels<{x.shape[1]}>({at(x)}, {y.target(at(y))}, {pixels}, team);"

    build.values[user] = y
    return build.step(step, [x], y, f"{module_name(node)} (codes)")


def _fill(
    build: Builder, node: fx.Node, y: Value, sides: list[tuple[int, int, int]], mode: str
) -> None:
    """Copies what lies around the middle of a tensor from there, one dimension after the other."""
    offsets = {
        "replicate": lambda at, size: min(max(at, 0), size - 1),
        "reflect": lambda at, size: abs(at) if at < size else 2 * (size - 1) - at,
        "circular": lambda at, size: at % size,
    }
    for number_, (dim, before, after) in enumerate(sides):
        size = y.shape[dim] - before - after
        # Of the dimensions that are done, all of it; of the others, the middle.
        part = y.view
        for other, left, right in sides[number_ + 1 :]:
            part = part.narrow(other, left, y.shape[other] - left - right)
        for at in (*range(-before, 0), *range(size, size + after)):
            from_ = before + offsets[mode](at, size)
            to = Value(y.buffer, part.narrow(dim, before + at, 1))
            source = Value(y.buffer, part.narrow(dim, from_, 1))
            build.map(to, [source], "a", f"{module_name(node)} ({mode})")


@_code(_aten.repeat.default)
def _repeat(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    times = given["repeats"]
    x = build.get(given["self"])
    sizes = [1] * (len(times) - x.view.dim()) + x.shape
    view = x.view.view(sizes) if sizes != x.shape else x.view
    for d in range(len(times)):
        view = view.unsqueeze(2 * d)
    return _repeated(
        build,
        node,
        Value(x.buffer, view),
        [n for t, s in zip(times, sizes, strict=True) for n in (t, s)],
    )


@_code(_aten.repeat_interleave.self_int)
def _repeat_interleave(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    given.without_effect("output_size")  # the shape of the result says it
    x, dim, times = build.get(given["self"]), given["dim"], given["repeats"]
    if dim is None:
        raise UserError("the network library has no code for repeat_interleave without 'dim'")
    dim %= x.view.dim()
    shape = [*x.shape[: dim + 1], times, *x.shape[dim + 1 :]]
    return _repeated(build, node, Value(x.buffer, x.view.unsqueeze(dim + 1)), shape)


def _repeated(build: Builder, node: fx.Node, x: Value, shape: list[int]) -> Value:
    """A tensor in this shape, several dimensions of which are one of the result."""
    y = build.program.new(shape)
    build.map(y, [x], "a", module_name(node))
    return Value(y.buffer, y.view.view(node.meta["val"].shape))


@_code(_aten.roll.default)
def _roll(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x, dims, shifts = build.get(given["self"]), given["dims"], given["shifts"]
    if len(dims) != len(shifts):
        raise UserError(
            "the network library has no code for a cyclic shift of all dimensions as one"
        )
    rank = x.view.dim()
    by = dict.fromkeys(range(rank), 0)
    for dim, shift in zip(dims, shifts, strict=True):
        by[dim % rank] += shift
    y = build.program.new(x.shape)
    pieces = []
    for dim, shift in by.items():
        size = x.shape[dim]
        turn = shift % size
        # From where, to where, and how many.
        both = [(0, turn, size - turn), (size - turn, 0, turn)]
        pieces.append([(dim, *piece) for piece in both if piece[2]])
    for piece in itertools.product(*pieces):
        source, to = x.view, y.view
        for dim, from_, start, count in piece:
            source, to = source.narrow(dim, from_, count), to.narrow(dim, start, count)
        build.map(Value(y.buffer, to), [Value(x.buffer, source)], "a", module_name(node))
    return y


def _sliced(
    build: Builder,
    node: fx.Node,
    given: NodeArguments,
    part: Callable[[torch.Tensor], torch.Tensor],
) -> Value:
    """A tensor with another one in place of a part of it."""
    x, source = build.get(given["self"]), build.get(given["src"])
    y = build.program.new(x.shape)
    build.map(y, [x], "a", module_name(node))
    build.map(Value(y.buffer, part(y.view)), [source], "a", f"{module_name(node)} (part)")
    return y


@_code(_aten.slice_scatter.default)
def _slice_scatter(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    place = [given[name] for name in ("dim", "start", "end", "step")]
    return _sliced(build, node, given, lambda view: _aten.slice.Tensor(view, *place))


@_code(_aten.select_scatter.default)
def _select_scatter(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    dim, index = given["dim"], given["index"]
    return _sliced(build, node, given, lambda view: view.select(dim, index))


@_code(_aten.copy.default)
def _copy(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    given.without_effect("self", "non_blocking")  # all of it is written
    return build.mapped(node, "a", build.get(given["src"]))
