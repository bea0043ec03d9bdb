"""Where each operator of PyTorch leaves the samples of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import fx

from syno.inference.samples.place import Meets, OperatorCall, SamplePlace, factor, number
from syno.inference.trace import SLOT, shape_of

_aten = torch.ops.aten
_Rule: TypeAlias = Callable[[OperatorCall], SamplePlace]
_RULES: dict[object, _Rule] = {}
# What may have the size of the batch as an argument: it is part of the shape of the result.
_SHAPED = {
    SLOT,
    _aten.expand.default,
    _aten.reshape.default,
    _aten.view.default,
    _aten._unsafe_view.default,
    _aten.unflatten.int,
    _aten.slice.Tensor,
}


def place_of_result(call: OperatorCall) -> SamplePlace:
    """Where the samples lie in what a call gives. `Meets` where they may depend on each other."""
    node = call.node
    sizes = (n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.SymInt))
    if next(sizes, None) is not None and node.target not in _SHAPED:
        raise Meets("it computes with the size of the batch")
    rule = _RULES.get(node.target)
    if rule is None and torch.Tag.pointwise in getattr(node.target, "tags", ()):
        rule = _pointwise
    if rule is None:
        raise Meets("it is not known what this operation does with a batch")
    return rule(call)


def _of(*names: str) -> Callable[[_Rule], _Rule]:
    """Decorator of the rule for these operators of ATen, each with or without its overload."""

    def register(rule: _Rule) -> _Rule:
        for name in names:
            packet = getattr(_aten, name.partition(".")[0])
            overloads = [name.partition(".")[2]] if "." in name else packet.overloads()
            for overload in overloads:
                _RULES[getattr(packet, overload)] = rule
        return rule

    return register


# --- each element by itself ----------------------------------------------------------------------


@_of(
    "hardswish",
    "log_sigmoid",
    "multiply",
    "divide",
    "subtract",
    "true_divide",
    "floor_divide",
    "type_as",
    "to",
    "_to_copy",
    "where",
    "contiguous",
    "dropout",
    "feature_dropout",
    "alpha_dropout",
    "zeros_like",
    "ones_like",
    "full_like",
    "fill",
    "detach",
    "alias",
    "lift_fresh_copy",
    "copy",
)
def _pointwise(call: OperatorCall) -> SamplePlace:
    """Operands that are broadcast: those with samples have them in one dimension."""
    return _aligned(call, call.places, len(call.shape))


def _aligned(call: OperatorCall, places: dict[fx.Node, SamplePlace], rank: int) -> SamplePlace:
    """The place that operands share after broadcasting to `rank` dimensions."""
    found = {place.at(rank - len(shape_of(n)) + place.dim) for n, place in places.items()}
    if len(found) != 1:
        raise Meets("its operands have their samples in different dimensions")
    return found.pop()


@_of("prelu", "_native_batch_norm_legit_no_training")
def _of_channels(call: OperatorCall) -> SamplePlace:
    """What has one constant for each index of dimension 1."""
    _, place = call.first()
    if place.dim == 1:
        raise Meets("channels are the batch")
    return place


# --- along dimensions ----------------------------------------------------------------------------


@_of(
    "softmax.int",
    "_softmax",
    "log_softmax.int",
    "_log_softmax",
    "mean.dim",
    "sum.dim_IntList",
    "prod.dim_int",
    "amax",
    "amin",
    "max.dim",
    "min.dim",
    "argmax",
    "argmin",
    "logsumexp",
    "var.correction",
    "var.dim",
    "std.correction",
    "std.dim",
    "var_mean.correction",
    "norm.ScalarOpt_dim",
    "linalg_vector_norm",
    "all.dim",
    "any.dim",
    "cumsum",
    "cumprod",
    "flip",
    "roll",
    "sort",
    "topk",
    "glu",
    "select.int",
    "narrow",
    "split.Tensor",
    "split_with_sizes",
    "chunk",
    "unbind",
    "index_select",
)
def _along(call: OperatorCall) -> SamplePlace:
    """What combines or chooses elements along some dimensions."""
    x, place = call.first()
    rank = len(shape_of(x))
    given = call.given.get("dim", call.given.get("dims"))
    dims = given if isinstance(given, (list, tuple)) else [given]
    if not dims or any(dim is None for dim in dims):
        raise Meets("it combines all elements")
    along = {int(dim) % rank for dim in dims if dim is not None}
    if place.dim in along:
        raise Meets("it combines or chooses samples")
    if len(call.shape) == rank:
        return place
    return place.at(place.dim - sum(dim < place.dim for dim in along))


@_of("slice.Tensor")
def _slice(call: OperatorCall) -> SamplePlace:
    """A part of a dimension, or all of it."""
    x, place = call.first()
    dim = int(call.given["dim"]) % len(call.shape)
    if dim == place.dim and str(call.shape[dim]) != str(shape_of(x)[dim]):
        raise Meets("it chooses samples")
    if dim == place.dim and call.given["step"] != 1:
        raise Meets("it chooses samples")
    return place


@_of("cat", "concat", "concatenate", "stack")
def _joined(call: OperatorCall) -> SamplePlace:
    """Tensors one behind the other, which have their samples in one place."""
    parts = call.given["tensors"]
    found = {call.places.get(part) for part in parts}
    place = found.pop()
    if found or place is None:
        raise Meets("its operands have their samples in different dimensions")
    rank = len(call.shape)
    dim = int(call.given["dim"]) % rank
    if rank > len(shape_of(parts[0])):  # a stack, which has a new dimension
        return place.at(place.dim + (dim <= place.dim))
    if dim == place.dim:
        raise Meets("it joins samples")
    return place


@_of("slice_scatter", "select_scatter")
def _written(call: OperatorCall) -> SamplePlace:
    """A tensor with a part of another one."""
    x, part = call.given["self"], call.given["src"]
    place, dim = call.places.get(x), int(call.given["dim"]) % len(call.shape)
    if place is None or place.dim == dim:
        raise Meets("it writes samples")
    removed = len(call.shape) - len(shape_of(part))
    if part not in call.places or call.places[part] != place.at(
        place.dim - removed * (dim < place.dim)
    ):
        raise Meets("its operands have their samples in different dimensions")
    return place


@_of("index.Tensor")
def _indexed(call: OperatorCall) -> SamplePlace:
    """Elements at constant places of neighbouring dimensions."""
    _, place = call.first()
    indices = call.given["indices"]
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if place.dim in dims or dims != list(range(dims[0], dims[-1] + 1)):
        raise Meets("it chooses samples")
    made = max(len(shape_of(indices[dim])) for dim in dims)
    return place if place.dim < dims[0] else place.at(place.dim - len(dims) + made)


@_of("unfold.default")
def _unfolded(call: OperatorCall) -> SamplePlace:
    """Windows along a dimension, whose elements are a new last one."""
    x, place = call.first()
    if int(call.given["dimension"]) % len(shape_of(x)) == place.dim:
        raise Meets("it combines samples")
    return place


@_of("diagonal")
def _diagonal(call: OperatorCall) -> SamplePlace:
    """Two dimensions as one behind the others."""
    x, place = call.first()
    gone = {int(call.given[name]) % len(shape_of(x)) for name in ("dim1", "dim2")}
    if place.dim in gone:
        raise Meets("it chooses samples")
    return place.at(place.dim - sum(dim < place.dim for dim in gone))


# --- shapes --------------------------------------------------------------------------------------


@_of(
    "reshape",
    "view.default",
    "_unsafe_view",
    "_reshape_copy",
    "flatten.using_ints",
    "unflatten.int",
    "squeeze",
    "unsqueeze",
)
def _reshaped(call: OperatorCall) -> SamplePlace:
    """Another shape for the elements in row-major order."""
    x, place = call.first()
    before = [number(size, call.batch) for size in shape_of(x)]
    factors = [factor(size, call.batch) for size in call.shape]
    after = [number(size, call.batch) for size in call.shape]
    # Elements around the batch: those that an index of it jumps over, and blocks of all samples.
    outer = math.prod(before[: place.dim]) * place.outer
    dims = [dim for dim, factor in enumerate(factors) if factor]
    if len(dims) != 1:
        raise Meets("its result has several dimensions as large as the batch")
    (dim,) = dims
    blocks, rest = divmod(outer, math.prod(after[:dim]))
    if rest or blocks == 0 or factors[dim] % blocks:
        raise Meets("its rows have elements of several samples")
    return SamplePlace(dim, blocks, factors[dim] // blocks)


@_of("permute")
def _permuted(call: OperatorCall) -> SamplePlace:
    _, place = call.first()
    dims = [int(dim) % len(call.shape) for dim in call.given["dims"]]
    return place.at(dims.index(place.dim))


@_of("transpose.int", "swapaxes", "swapdims", "t")
def _transposed(call: OperatorCall) -> SamplePlace:
    _, place = call.first()
    rank = len(call.shape)
    names = [("dim0", "dim1"), ("axis0", "axis1")]
    given = next(
        ([int(call.given[n]) % rank for n in pair] for pair in names if pair[0] in call.given),
        [0, rank - 1],  # t() has no arguments
    )
    exchanged = {given[0]: given[1], given[1]: given[0]}
    return place.at(exchanged.get(place.dim, place.dim))


@_of("expand")
def _expanded(call: OperatorCall) -> SamplePlace:
    """More of the same in other dimensions."""
    return _aligned(call, dict([call.first()]), len(call.shape))


@_of("repeat")
def _repeated(call: OperatorCall) -> SamplePlace:
    """The same several times, one after the other; all samples, too."""
    place = _expanded(call)
    return SamplePlace(place.dim, place.outer * int(call.given["repeats"][place.dim]), place.inner)


@_of("repeat_interleave.self_int")
def _interleaved(call: OperatorCall) -> SamplePlace:
    """Each element several times; each sample, too."""
    x, place = call.first()
    if call.given["dim"] is None:
        raise Meets("it combines all elements")
    if int(call.given["dim"]) % len(shape_of(x)) != place.dim:
        return place
    return SamplePlace(place.dim, place.outer, place.inner * int(call.given["repeats"]))


# --- what combines the last dimensions -----------------------------------------------------------


def _trailing(count: Callable[[OperatorCall], int]) -> _Rule:
    """The rule of what combines the last dimensions of its first argument, so many of them."""

    def rule(call: OperatorCall) -> SamplePlace:
        x, place = call.first()
        if place.dim >= len(shape_of(x)) - count(call):
            raise Meets("it combines samples")
        return place

    return rule


def _fixed(count: int) -> _Rule:
    return _trailing(lambda call: count)


for _rank in (1, 2, 3):
    _of(f"conv{_rank}d")(_fixed(_rank + 1))
    _of(f"conv_transpose{_rank}d")(_fixed(_rank + 1))
    for _name in ("max_pool", "avg_pool", "adaptive_avg_pool", "adaptive_max_pool"):
        _of(f"{_name}{_rank}d")(_fixed(_rank))
    for _name in ("reflection_pad", "replication_pad", "upsample_nearest"):
        _of(f"{_name}{_rank}d")(_fixed(_rank))
_of("upsample_linear1d")(_fixed(1))
_of("upsample_bilinear2d", "upsample_bicubic2d", "max_pool2d_with_indices")(_fixed(2))
_of("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")(_fixed(2))
_of("upsample_trilinear3d", "max_pool3d_with_indices")(_fixed(3))
_of("pixel_shuffle", "pixel_unshuffle", "im2col")(_fixed(3))
_of("col2im")(_fixed(2))
_of("group_norm", "instance_norm", "channel_shuffle")(
    _trailing(lambda call: len(shape_of(call.first()[0])) - 1)
)
_of("layer_norm", "rms_norm")(_trailing(lambda call: len(call.given["normalized_shape"])))
_of("constant_pad_nd", "pad")(_trailing(lambda call: len(call.given["pad"]) // 2))
_of("linear")(_fixed(1))
_RULES[SLOT] = _trailing(lambda call: len(shape_of(call.first()[0])) - 1)


@_of("embedding")
def _embedding(call: OperatorCall) -> SamplePlace:
    ids = call.given["indices"]
    if list(call.places) != [ids]:
        raise Meets("its table has samples")
    return call.places[ids]


# --- products ------------------------------------------------------------------------------------


@_of("addmm")
def _matrix_of(call: OperatorCall) -> SamplePlace:
    """A bias and the product of a matrix with a weight."""
    x = call.given["mat1"]
    if list(call.places) != [x] or call.places[x].dim != 0:
        raise Meets("it combines samples")
    return call.places[x]


@_of("matmul", "mm", "bmm")
def _product(call: OperatorCall) -> SamplePlace:
    """Rows of the first operand with columns of the second one."""
    a, b = call.node.args[:2]
    assert isinstance(a, fx.Node) and isinstance(b, fx.Node)
    if min(len(shape_of(a)), len(shape_of(b))) < 2:
        raise Meets("it is not known which elements it combines")
    rank = len(call.shape)
    held = {n: p.at(rank - len(shape_of(n)) + p.dim) for n, p in call.places.items()}
    summed = (a in held and held[a].dim == rank - 1) or (b in held and held[b].dim == rank - 2)
    if summed or len(set(held.values())) != 1 or (a is b and held[a].dim >= rank - 2):
        raise Meets("it combines samples")
    place = next(iter(held.values()))
    if len(held) == 2 and place.dim >= rank - 2:
        raise Meets("it combines samples")
    return place


@_of("scaled_dot_product_attention")
def _attention(call: OperatorCall) -> SamplePlace:
    """Queries with keys and values of the same batch."""
    rank = len(call.shape)
    if any(place.dim >= len(shape_of(n)) - 2 for n, place in call.places.items()):
        raise Meets("it combines samples")
    return _aligned(call, call.places, rank)
