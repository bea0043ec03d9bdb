"""Follows channels through the graph of a network.

Every dimension of a tensor is either of channels, and then each of its elements is a numbered
channel, or of something else, such as places or samples. Operations join channels: an addition
those of its terms, a convolution those that it reads with the second dimension of its weight. What
an operation that is not known reads or gives is kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from syno.network.channels.classes import Classes, Ids

_aten = torch.ops.aten
# Of each dimension of a tensor: its channels, or None.
Dims = list[Ids | None]


class Follower:
    """The channels of all values of a graph of torch.export.

    dims: of each node; a node with several tensors has a list of them.
    """

    def __init__(self, graph: fx.Graph, held: Sequence[str]) -> None:
        """held: the names of the inputs that are parameters or buffers."""
        self.classes = Classes()
        self.dims: dict[fx.Node, Any] = {}
        names = set(held)
        for node in graph.nodes:
            if node.op == "placeholder":
                shape = _shape(node)
                fresh = node.name in names and shape is not None and len(node.users) > 0
                self.dims[node] = (
                    [self.classes.new(size) for size in shape] if fresh and shape else _plain(shape)
                )
            elif node.op == "output":
                for each in node.all_input_nodes:
                    self._keep(each)
            else:
                self.dims[node] = self._visit(node)

    def _visit(self, node: fx.Node) -> Any:
        rule = _RULES.get(node.target)  # type: ignore[arg-type]
        if rule is None and torch.Tag.pointwise in getattr(node.target, "tags", ()):
            rule = _pointwise
        found = None if rule is None else rule(self, node)
        if found is not None:
            return found
        for each in node.all_input_nodes:
            self._keep(each)
        value = node.meta.get("val")
        if isinstance(value, (list, tuple)):
            return [_plain(getattr(each, "shape", None)) for each in value]
        return _plain(_shape(node))

    def _keep(self, node: fx.Node) -> None:
        found = self.dims.get(node)
        for dims in found if found and isinstance(found[0], list) else [found]:
            self.classes.keep(dims or ())

    def meet(self, one: Ids | None, other: Ids | None) -> Ids | None:
        """The channels of a dimension that two tensors share."""
        if one is not None and other is not None and len(one) == len(other):
            self.classes.join(one, other)
            return one
        self.classes.keep((one, other))
        return None

    def of(self, node: object) -> Dims:
        """Of a node that is one tensor."""
        assert isinstance(node, fx.Node)
        return self.dims[node]  # type: ignore[no-any-return]


def _shape(node: fx.Node) -> tuple[int, ...] | None:
    value = node.meta.get("val")
    return tuple(map(int, value.shape)) if isinstance(value, torch.Tensor) else None


def _plain(shape: Sequence[int] | None) -> Dims:
    return [None] * len(shape or ())


def _pointwise(follower: Follower, node: fx.Node) -> Dims | None:
    """A function of each element, of tensors that are broadcast."""
    shape = _shape(node)
    if shape is None:
        return None
    result: Dims = [None] * len(shape)
    seen = [False] * len(shape)
    for each in node.all_input_nodes:
        dims, sizes = follower.of(each), _shape(each) or ()
        for back in range(1, len(sizes) + 1):
            if sizes[-back] != shape[-back]:
                continue  # one element for all
            if not seen[-back]:
                result[-back], seen[-back] = dims[-back], True
            elif shape[-back] > 1:
                result[-back] = follower.meet(result[-back], dims[-back])
    return result


def _same(follower: Follower, node: fx.Node) -> Dims:
    return list(follower.of(node.args[0]))


def _convolution(follower: Follower, node: fx.Node) -> Dims | None:
    x, w = follower.of(node.args[0]), follower.of(node.args[1])
    shape = _shape(node.args[1])  # type: ignore[arg-type]
    made, inside = w[0], w[1]
    if shape is None or made is None or inside is None:
        return None  # a weight that is computed
    follower.classes.keep((x[0], *x[2:], *w[2:]))  # samples and places
    groups, read = _argument(node, "groups", 1), x[1]
    if groups == 1:
        follower.meet(read, inside)
    elif read is None:
        return None
    elif groups == len(read) == shape[0]:  # depthwise: a channel is a group
        follower.classes.join(read, made)
    else:
        # Groups keep equal sizes: what one loses at a place, all lose.
        for group in range(groups):
            follower.classes.join(read[group * shape[1] : (group + 1) * shape[1]], inside)
        part = shape[0] // groups
        for group in range(1, groups):
            follower.classes.join(made[:part], made[group * part : (group + 1) * part])
    bias = _argument(node, "bias", None)
    if isinstance(bias, fx.Node):
        follower.meet(made, follower.of(bias)[0])
    return [None, made, *[None] * (len(x) - 2)]


def _linear(follower: Follower, node: fx.Node) -> Dims:
    x, w = follower.of(node.args[0]), follower.of(node.args[1])
    follower.meet(x[-1], w[1])
    bias = _argument(node, "bias", None)
    if isinstance(bias, fx.Node):
        follower.meet(w[0], follower.of(bias)[0])
    return [*x[:-1], w[0]]


def _batch_norm(follower: Follower, node: fx.Node) -> list[Dims]:
    """In evaluation mode; its further results are empty."""
    result = list(follower.of(node.args[0]))
    for each in node.args[1:5]:
        if isinstance(each, fx.Node):
            result[1] = follower.meet(result[1], follower.of(each)[0])
    return [result, [None], [None]]


def _pool(follower: Follower, node: fx.Node) -> Dims:
    dims = follower.of(node.args[0])
    given = _shape(node)
    spatial = 2 if "2d" in str(node.target) else 1 if "1d" in str(node.target) else 3
    follower.classes.keep(dims[-spatial:])
    assert given is not None
    return [*dims[:-spatial], *[None] * spatial]


def _reduce(follower: Follower, node: fx.Node) -> Dims | None:
    """A mean, a sum or a maximum over dimensions."""
    dims = list(follower.of(node.args[0]))
    axes = _argument(node, "dim", None)
    if axes is None:
        return None
    gone = {d % len(dims) for d in ([axes] if isinstance(axes, int) else axes)}
    follower.classes.keep(dims[d] for d in gone)
    if _argument(node, "keepdim", False):
        return [None if d in gone else each for d, each in enumerate(dims)]
    return [each for d, each in enumerate(dims) if d not in gone]


def _permute(follower: Follower, node: fx.Node) -> Dims:
    dims = follower.of(node.args[0])
    return [dims[d] for d in node.args[1]]  # type: ignore[union-attr, index]


def _transpose(follower: Follower, node: fx.Node) -> Dims:
    dims = list(follower.of(node.args[0]))
    one, other = (int(d) % len(dims) for d in node.args[1:3])  # type: ignore[arg-type]
    dims[one], dims[other] = dims[other], dims[one]
    return dims


def _reshape(follower: Follower, node: fx.Node) -> Dims | None:
    """Any view with the same order of elements: parts of dimensions that are split or merged."""
    dims, before, after = follower.of(node.args[0]), _shape(node.args[0]), _shape(node)  # type: ignore[arg-type]
    if before is None or after is None:
        return None
    result: Dims = []
    i = j = 0
    while i < len(before) or j < len(after):
        # The shortest runs of dimensions with equally many elements.
        first, start = i, j
        size, made = 1, 1
        while True:
            if size == made and (i > first or j > start) and size > 0:
                break
            if (size <= made and i < len(before)) or j >= len(after):
                size *= before[i]
                i += 1
            else:
                made *= after[j]
                j += 1
        result += _of_run(follower, dims[first:i], before[first:i], after[start:j])
    return result


def _of_run(follower: Follower, dims: Dims, before: Sequence[int], after: Sequence[int]) -> Dims:
    asked = [d for d, ids in enumerate(dims) if ids is not None and before[d] > 1]
    wide = [d for d, size in enumerate(after) if size > 1]
    if not asked:
        return [None] * len(after)
    if len(asked) > 1 and len(wide) > 0 and list(before) != list(after):
        follower.classes.keep(dims)
        return [None] * len(after)
    if list(before) == list(after):
        return dims
    (d,) = asked
    ids = dims[d]
    assert ids is not None
    every = np.broadcast_to(
        ids.reshape([-1 if axis == d else 1 for axis in range(len(before))]), before
    ).reshape(-1)
    if len(wide) <= 1:
        return [every if axis in wide else None for axis in range(len(after))]
    # The channels become several dimensions: those of the last one in which they vary stay
    # channels, each for all places of the others.
    grid = every.reshape(after)
    varies = [axis for axis in wide if (grid != grid.take([0], axis)).any()]
    last = varies[-1]
    moved = np.moveaxis(grid, last, 0).reshape(after[last], -1)
    for column in range(1, moved.shape[1]):
        follower.classes.join(moved[:, 0], moved[:, column])
    return [moved[:, 0].copy() if axis == last else None for axis in range(len(after))]


def _unsqueeze(follower: Follower, node: fx.Node) -> Dims:
    dims = list(follower.of(node.args[0]))
    at = int(node.args[1])  # type: ignore[arg-type]
    dims.insert(at % (len(dims) + 1), None)
    return dims


def _cat(follower: Follower, node: fx.Node) -> Dims | None:
    parts = [follower.of(each) for each in node.args[0]]  # type: ignore[union-attr]
    axis = int(_argument(node, "dim", 0)) % len(parts[0])
    result: Dims = list(parts[0])
    for d in range(len(result)):
        if d == axis:
            every = [part[d] for part in parts]
            if any(each is None for each in every):
                follower.classes.keep(every)
                result[d] = None
            else:
                result[d] = np.concatenate(every)  # type: ignore[arg-type]
        else:
            for part in parts[1:]:
                result[d] = follower.meet(result[d], part[d])
    return result


def _split(follower: Follower, node: fx.Node) -> list[Dims] | None:
    """Parts of a tensor, side by side."""
    dims, axis = follower.of(node.args[0]), int(_argument(node, "dim", 0))
    axis %= len(dims)
    ids, found, begin = dims[axis], [], 0
    for value in node.meta["val"]:
        size = int(value.shape[axis])
        part = None if ids is None else ids[begin : begin + size]
        found.append([part if d == axis else each for d, each in enumerate(dims)])
        begin += size
    if len({value.shape[axis] for value in node.meta["val"]}) == 1:
        # Python splits in equal parts again: what one loses at a place, all lose.
        for other in found[1:]:
            follower.meet(found[0][axis], other[axis])
    else:
        follower.classes.keep([ids])
    return found


def _item(follower: Follower, node: fx.Node) -> Dims | None:
    source, number = node.args
    found = follower.dims[source]  # type: ignore[index]
    return found[number] if found and isinstance(found[0], list) else None  # type: ignore[index]


def _matmul(follower: Follower, node: fx.Node) -> Dims | None:
    x, y = follower.of(node.args[0]), follower.of(node.args[1])
    if len(x) != len(y) or len(x) < 2:
        return None
    follower.classes.keep((x[-1], y[-2]))  # a sum over channels without a weight
    batch = [follower.meet(a, b) for a, b in zip(x[:-2], y[:-2], strict=True)]
    return [*batch, x[-2], y[-1]]


def _softmax(follower: Follower, node: fx.Node) -> Dims:
    dims = list(follower.of(node.args[0]))
    axis = int(node.args[1]) % len(dims)  # type: ignore[arg-type]
    follower.classes.keep([dims[axis]])
    return dims


def _attention(follower: Follower, node: fx.Node) -> Dims:
    """softmax(q k^T) v. What queries and keys have decides about the scale."""
    q, k, v = (follower.of(each) for each in node.args[:3])
    follower.classes.keep((*q, *k, *v[:-1]))
    return [*[None] * (len(q) - 1), v[-1]]


def _argument(node: fx.Node, name: str, default: Any) -> Any:
    """An argument of a call by its name in the schema."""
    if name in node.kwargs:
        return node.kwargs[name]
    schema = node.target._schema  # type: ignore[union-attr]
    for place, argument in enumerate(schema.arguments):
        if argument.name == name and place < len(node.args):
            return node.args[place]
    return default


Rule = Callable[[Follower, fx.Node], Any]
_RULES: dict[object, Rule] = {
    **dict.fromkeys(
        (_aten.conv1d.default, _aten.conv2d.default, _aten.conv3d.default), _convolution
    ),
    **dict.fromkeys(
        (_aten.conv1d.padding, _aten.conv2d.padding, _aten.conv3d.padding), _convolution
    ),
    _aten.linear.default: _linear,
    _aten._native_batch_norm_legit_no_training.default: _batch_norm,
    **dict.fromkeys(
        (
            _aten.avg_pool1d.default,
            _aten.avg_pool2d.default,
            _aten.max_pool1d.default,
            _aten.max_pool2d.default,
            _aten.adaptive_avg_pool1d.default,
            _aten.adaptive_avg_pool2d.default,
            _aten.upsample_nearest2d.vec,
            _aten.upsample_bilinear2d.vec,
        ),
        _pool,
    ),
    **dict.fromkeys(
        (_aten.mean.dim, _aten.sum.dim_IntList, _aten.amax.default, _aten.amin.default), _reduce
    ),
    _aten.permute.default: _permute,
    _aten.transpose.int: _transpose,
    **dict.fromkeys(
        (
            _aten.view.default,
            _aten.reshape.default,
            _aten.flatten.using_ints,
            _aten.unflatten.int,
            _aten._unsafe_view.default,
            _aten.squeeze.dim,
            _aten.squeeze.dims,
        ),
        _reshape,
    ),
    _aten.unsqueeze.default: _unsqueeze,
    **dict.fromkeys((_aten.cat.default, _aten.concat.default), _cat),
    **dict.fromkeys(
        (_aten.chunk.default, _aten.split.Tensor, _aten.split_with_sizes.default), _split
    ),
    operator.getitem: _item,
    **dict.fromkeys((_aten.matmul.default, _aten.bmm.default), _matmul),
    **dict.fromkeys((_aten.softmax.int, _aten._softmax.default), _softmax),
    _aten.scaled_dot_product_attention.default: _attention,
    **dict.fromkeys(
        (
            _aten.dropout.default,
            _aten.dropout_.default,
            _aten.feature_dropout.default,
            _aten.contiguous.default,
            _aten.clone.default,
            _aten.detach.default,
            _aten.alias.default,
            _aten.gelu.default,
            _aten.hardswish.default,
            _aten.hardsigmoid.default,
        ),
        _same,
    ),
}
