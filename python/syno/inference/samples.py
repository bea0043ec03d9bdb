"""Where the samples of a batch lie in the tensors of a graph, and whether they meet.

A network library computes each sample by itself. That is what the network does if no operation of
its graph, traced for a batch of any size, combines elements of two samples, and none computes with
the size of the batch. Both are shown here operation by operation; what is not known is refused.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from syno._util.errors import UserError
from syno.inference.trace import SLOT, attribute, batched_inputs, module_name, shape_of

_aten = torch.ops.aten
_Rule: TypeAlias = "Callable[[_Call], Place]"
_RULES: dict[object, _Rule] = {}


@dataclass(frozen=True)
class Place:
    """The element i of dimension `dim` belongs to the sample (i / inner) mod batch.

    That dimension has `outer` times the batch times `inner` elements.
    """

    dim: int
    outer: int = 1
    inner: int = 1

    def at(self, dim: int) -> Place:
        """The same in another dimension."""
        return Place(dim, self.outer, self.inner)


class _Meets(Exception):
    """Why samples may meet."""


@dataclass(frozen=True)
class _Call:
    """A call of an operator of PyTorch. places: of the tensors among its arguments, of which only
    those that have samples; given: its arguments by their names in the schema."""

    node: fx.Node
    places: dict[fx.Node, Place]
    given: dict[str, Any]
    batch: torch.SymInt

    @property
    def shape(self) -> list[int | torch.SymInt]:
        """The shape of its result, or of the first one."""
        value = self.node.meta["val"]
        return list((value[0] if isinstance(value, (list, tuple)) else value).shape)

    def first(self) -> tuple[fx.Node, Place]:
        """The first argument, which must be the only one with samples."""
        x = self.node.args[0]
        if not isinstance(x, fx.Node) or list(self.places) != [x]:
            raise _Meets("another argument than the first one has samples")
        return x, self.places[x]


def places_of_results(graph: fx.GraphModule) -> list[Place | None]:
    """Where the samples lie in the results of a graph that was traced for a batch of any size.

    None for a result that has no samples.

    UserError naming the module where samples may meet.
    """
    found = _Places(graph)
    for node in graph.graph.nodes:
        try:
            if node.op == "output":
                return [found.of(n) for n in node.all_input_nodes if _is_tensor(n)]
            found.visit(node)
        except _Meets as reason:
            raise UserError(
                f"the samples of a batch may depend on each other: {reason}\n"
                f"  in the module {module_name(node)}, at {node.target}\n"
                "  expected: a network that computes each sample by itself\n"
                "  what to do: use syno.compile, or the format torch-export, onnx or aoti"
            ) from None
    raise AssertionError("a graph without an output")


def readers_of_results(graph: fx.GraphModule) -> list[frozenset[int]] | None:
    """The numbers of the inputs that each result depends on.

    None for a graph with one input of any batch size, and where samples may meet.
    """
    if sum(batched_inputs(graph)) < 2:
        return None
    try:
        if None in places_of_results(graph):
            return None
    except UserError:
        return None
    read: dict[fx.Node, frozenset[int]] = {}
    inputs = 0
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            read[node] = frozenset({inputs})
            inputs += 1
        elif node.op == "output":
            break
        else:
            read[node] = frozenset().union(*(read[each] for each in node.all_input_nodes))
    return [read[each] for each in node.all_input_nodes if _is_tensor(each)]


class _Places:
    """Places of samples, node by node in the order of a graph."""

    def __init__(self, graph: fx.GraphModule) -> None:
        self._batch = _batch_of(graph)
        self._places: dict[fx.Node, Place] = {}
        self._constants = _Constants(graph, self._batch)

    def of(self, node: fx.Node) -> Place | None:
        """The place of the samples in a tensor; None where it has none."""
        if node not in self._places and node in self._constants.sized:
            return self._constants.place(node)
        return self._places.get(node)

    def visit(self, node: fx.Node) -> None:
        """Find the place of a node whose arguments have theirs."""
        if node.op == "placeholder" and isinstance(node.meta["val"].shape[0], torch.SymInt):
            self._places[node] = Place(0)
        if node.op != "call_function" or node.meta.get("val") is None or self._constants.add(node):
            return
        if node.target is operator.getitem:
            whole = node.args[0]
            if whole in self._places:
                self._places[node] = self._places[whole]  # type: ignore[index]
            return
        own = {n: place for n in node.all_input_nodes if (place := self.of(n)) is not None}
        call = _Call(node, own, _arguments(node), self._batch)
        if own:
            self._places[node] = _rule(call)
            _check(call, self._places[node])
        elif self._constants.is_sized(node):
            raise _Meets("a value depends on the size of the batch")


class _Constants:
    """Tensors that no input has a part in. Some depend on the size of the batch.

    Those must have one value for all samples, which is that of a batch of one; a few sizes stand
    for all. sized: the tensors that do.
    """

    _SIZES = (1, 2, 3, 7)

    def __init__(self, graph: fx.GraphModule, batch: torch.SymInt) -> None:
        self.sized: set[fx.Node] = set()
        self._graph = graph
        self._batch = batch
        self._sizes: set[fx.Node] = set()
        self._constant: set[fx.Node] = set()
        self._values: dict[tuple[fx.Node, int], Any] = {}

    def add(self, node: fx.Node) -> bool:
        """Whether a call gives a size or a constant, which is noted."""
        if isinstance(node.meta["val"], (int, float, bool, torch.SymInt, torch.SymFloat)):
            self._sizes.add(node)
            return True
        tensors = [n for n in node.all_input_nodes if n not in self._sizes]
        if not all(n.op == "get_attr" or n in self._constant for n in tensors):
            return False
        self._constant.add(node)
        if self.is_sized(node):
            self.sized.add(node)
        return True

    def is_sized(self, node: fx.Node) -> bool:
        """Whether a call has the size of the batch, or what depends on it, as an argument."""
        return any(n in self._sizes or n in self.sized for n in node.all_input_nodes)

    def place(self, node: fx.Node) -> Place | None:
        """The place of the samples, each of which is the same; None for a tensor without any."""
        shape = shape_of(node)
        factors = {d: f for d, size in enumerate(shape) if (f := _factor(size, self._batch))}
        if len(factors) > 1:
            raise _Meets("a constant has several dimensions as large as the batch")
        dim, inner = next(iter(factors.items()), (0, 0))
        one = self._value(node, 1)
        for size in self._SIZES:
            copies = [size if d == dim and factors else 1 for d in range(len(shape))]
            if not torch.equal(self._value(node, size), one.repeat(copies)):
                raise _Meets("a constant depends on the sample or on the size of the batch")
        return Place(dim, 1, inner) if factors else None

    def _value(self, node: fx.Node, batch: int) -> Any:
        if node in self._sizes:
            size = node.meta["val"]
            if not isinstance(size, torch.SymInt):
                return size
            found: Any = size.node.expr
            return int(found.subs(self._batch.node.expr, batch))
        if node.op == "get_attr":
            return attribute(self._graph, str(node.target))
        key = node, batch if node in self.sized else 0
        if key not in self._values:
            if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
                raise _Meets("it draws random numbers")
            known = {n: self._value(n, batch) for n in node.all_input_nodes}
            with torch.no_grad():
                self._values[key] = _called(node, known)
        return self._values[key]


def _batch_of(graph: fx.GraphModule) -> torch.SymInt:
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    batch: torch.SymInt = inputs[batched_inputs(graph).index(True)].meta["val"].shape[0]
    return batch


def _called(node: fx.Node, values: dict[fx.Node, Any]) -> Any:
    """What a call gives for these values of its arguments."""
    args, kwargs = fx.node.map_arg((node.args, dict(node.kwargs)), lambda each: values[each])
    return node.target(*args, **kwargs)  # type: ignore[operator]


def _rule(call: _Call) -> Place:
    node = call.node
    sizes = (n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.SymInt))
    if next(sizes, None) is not None and node.target not in _SHAPED:
        raise _Meets("it computes with the size of the batch")
    rule = _RULES.get(node.target)
    if rule is None and torch.Tag.pointwise in getattr(node.target, "tags", ()):
        rule = _pointwise
    if rule is None:
        raise _Meets("it is not known what this operation does with a batch")
    return rule(call)


def _check(call: _Call, place: Place) -> None:
    """The result has as many elements of each sample as its place says, and no other batch."""
    for dim, size in enumerate(call.shape):
        expected = place.outer * place.inner if dim == place.dim else 0
        if _factor(size, call.batch) != expected:
            raise _Meets(f"dimension {dim} of its result has the size {size}")
    if not -1 < place.dim < len(call.shape):
        raise _Meets("its result has no batch")


def _factor(size: int | torch.SymInt, batch: torch.SymInt) -> int:
    """The factor k of a size k * batch, 0 for a number."""
    if isinstance(size, int):
        return 0
    ratio = size.node.expr / batch.node.expr
    if not ratio.is_Integer:
        raise _Meets(f"a dimension has the size {size}")
    return int(ratio)


def _is_tensor(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _arguments(node: fx.Node) -> dict[str, Any]:
    """The arguments of a call by their names; those that are not given have their defaults."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return {}
    found = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
    names = [argument.name for argument in schema.arguments]
    return found | dict(zip(names, node.args, strict=False)) | dict(node.kwargs)


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
def _pointwise(call: _Call) -> Place:
    """Operands that are broadcast: those with samples have them in one dimension."""
    return _aligned(call, call.places, len(call.shape))


def _aligned(call: _Call, places: dict[fx.Node, Place], rank: int) -> Place:
    """The place that operands share after broadcasting to `rank` dimensions."""
    found = {place.at(rank - len(shape_of(n)) + place.dim) for n, place in places.items()}
    if len(found) != 1:
        raise _Meets("its operands have their samples in different dimensions")
    return found.pop()


@_of("prelu", "_native_batch_norm_legit_no_training")
def _of_channels(call: _Call) -> Place:
    """What has one constant for each index of dimension 1."""
    _, place = call.first()
    if place.dim == 1:
        raise _Meets("channels are the batch")
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
def _along(call: _Call) -> Place:
    """What combines or chooses elements along some dimensions."""
    x, place = call.first()
    rank = len(shape_of(x))
    given = call.given.get("dim", call.given.get("dims"))
    dims = given if isinstance(given, (list, tuple)) else [given]
    if not dims or any(dim is None for dim in dims):
        raise _Meets("it combines all elements")
    along = {int(dim) % rank for dim in dims if dim is not None}
    if place.dim in along:
        raise _Meets("it combines or chooses samples")
    if len(call.shape) == rank:
        return place
    return place.at(place.dim - sum(dim < place.dim for dim in along))


@_of("slice.Tensor")
def _slice(call: _Call) -> Place:
    """A part of a dimension, or all of it."""
    x, place = call.first()
    dim = int(call.given["dim"]) % len(call.shape)
    if dim == place.dim and str(call.shape[dim]) != str(shape_of(x)[dim]):
        raise _Meets("it chooses samples")
    if dim == place.dim and call.given["step"] != 1:
        raise _Meets("it chooses samples")
    return place


@_of("cat", "concat", "concatenate", "stack")
def _joined(call: _Call) -> Place:
    """Tensors one behind the other, which have their samples in one place."""
    parts = call.given["tensors"]
    found = {call.places.get(part) for part in parts}
    place = found.pop()
    if found or place is None:
        raise _Meets("its operands have their samples in different dimensions")
    rank = len(call.shape)
    dim = int(call.given["dim"]) % rank
    if rank > len(shape_of(parts[0])):  # a stack, which has a new dimension
        return place.at(place.dim + (dim <= place.dim))
    if dim == place.dim:
        raise _Meets("it joins samples")
    return place


@_of("slice_scatter", "select_scatter")
def _written(call: _Call) -> Place:
    """A tensor with a part of another one."""
    x, part = call.given["self"], call.given["src"]
    place, dim = call.places.get(x), int(call.given["dim"]) % len(call.shape)
    if place is None or place.dim == dim:
        raise _Meets("it writes samples")
    removed = len(call.shape) - len(shape_of(part))
    if part not in call.places or call.places[part] != place.at(
        place.dim - removed * (dim < place.dim)
    ):
        raise _Meets("its operands have their samples in different dimensions")
    return place


@_of("index.Tensor")
def _indexed(call: _Call) -> Place:
    """Elements at constant places of neighbouring dimensions."""
    _, place = call.first()
    indices = call.given["indices"]
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if place.dim in dims or dims != list(range(dims[0], dims[-1] + 1)):
        raise _Meets("it chooses samples")
    made = max(len(shape_of(indices[dim])) for dim in dims)
    return place if place.dim < dims[0] else place.at(place.dim - len(dims) + made)


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
def _reshaped(call: _Call) -> Place:
    """Another shape for the elements in row-major order."""
    x, place = call.first()
    before = [_number(size, call.batch) for size in shape_of(x)]
    factors = [_factor(size, call.batch) for size in call.shape]
    after = [_number(size, call.batch) for size in call.shape]
    # Elements around the batch: those that an index of it jumps over, and blocks of all samples.
    outer = math.prod(before[: place.dim]) * place.outer
    dims = [dim for dim, factor in enumerate(factors) if factor]
    if len(dims) != 1:
        raise _Meets("its result has several dimensions as large as the batch")
    (dim,) = dims
    blocks, rest = divmod(outer, math.prod(after[:dim]))
    if rest or blocks == 0 or factors[dim] % blocks:
        raise _Meets("its rows have elements of several samples")
    return Place(dim, blocks, factors[dim] // blocks)


def _number(size: int | torch.SymInt, batch: torch.SymInt) -> int:
    """A size of a dimension without the batch: what it is a multiple of the batch by."""
    return size if isinstance(size, int) else _factor(size, batch)


@_of("permute")
def _permuted(call: _Call) -> Place:
    _, place = call.first()
    dims = [int(dim) % len(call.shape) for dim in call.given["dims"]]
    return place.at(dims.index(place.dim))


@_of("transpose.int", "swapaxes", "swapdims", "t")
def _transposed(call: _Call) -> Place:
    _, place = call.first()
    rank = len(call.shape)
    names = [("dim0", "dim1"), ("axis0", "axis1")]
    given = next(
        ([int(call.given[n]) % rank for n in pair] for pair in names if pair[0] in call.given),
        [0, rank - 1],  # t() has no arguments
    )
    exchanged = {given[0]: given[1], given[1]: given[0]}
    return place.at(exchanged.get(place.dim, place.dim))


@_of("expand", "repeat")
def _expanded(call: _Call) -> Place:
    """More of the same in other dimensions."""
    return _aligned(call, dict([call.first()]), len(call.shape))


# --- what combines the last dimensions -----------------------------------------------------------


def _trailing(count: Callable[[_Call], int]) -> _Rule:
    """The rule of what combines the last dimensions of its first argument, so many of them."""

    def rule(call: _Call) -> Place:
        x, place = call.first()
        if place.dim >= len(shape_of(x)) - count(call):
            raise _Meets("it combines samples")
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
_of("upsample_trilinear3d", "max_pool3d_with_indices")(_fixed(3))
_of("pixel_shuffle", "pixel_unshuffle", "im2col")(_fixed(3))
_of("group_norm", "instance_norm", "channel_shuffle")(
    _trailing(lambda call: len(shape_of(call.first()[0])) - 1)
)
_of("layer_norm", "rms_norm")(_trailing(lambda call: len(call.given["normalized_shape"])))
_of("constant_pad_nd", "pad")(_trailing(lambda call: len(call.given["pad"]) // 2))
_of("linear")(_fixed(1))
_RULES[SLOT] = _trailing(lambda call: len(shape_of(call.first()[0])) - 1)


@_of("embedding")
def _embedding(call: _Call) -> Place:
    ids = call.given["indices"]
    if list(call.places) != [ids]:
        raise _Meets("its table has samples")
    return call.places[ids]


# --- products ------------------------------------------------------------------------------------


@_of("addmm")
def _matrix_of(call: _Call) -> Place:
    """A bias and the product of a matrix with a weight."""
    x = call.given["mat1"]
    if list(call.places) != [x] or call.places[x].dim != 0:
        raise _Meets("it combines samples")
    return call.places[x]


@_of("matmul", "mm", "bmm")
def _product(call: _Call) -> Place:
    """Rows of the first operand with columns of the second one."""
    a, b = call.node.args[:2]
    assert isinstance(a, fx.Node) and isinstance(b, fx.Node)
    if min(len(shape_of(a)), len(shape_of(b))) < 2:
        raise _Meets("it is not known which elements it combines")
    rank = len(call.shape)
    held = {n: p.at(rank - len(shape_of(n)) + p.dim) for n, p in call.places.items()}
    summed = (a in held and held[a].dim == rank - 1) or (b in held and held[b].dim == rank - 2)
    if summed or len(set(held.values())) != 1 or (a is b and held[a].dim >= rank - 2):
        raise _Meets("it combines samples")
    place = next(iter(held.values()))
    if len(held) == 2 and place.dim >= rank - 2:
        raise _Meets("it combines samples")
    return place


@_of("scaled_dot_product_attention")
def _attention(call: _Call) -> Place:
    """Queries with keys and values of the same batch."""
    rank = len(call.shape)
    if any(place.dim >= len(shape_of(n)) - 2 for n, place in call.places.items()):
        raise _Meets("it combines samples")
    return _aligned(call, call.places, rank)


# --- one size of the batch -----------------------------------------------------------------------


def for_one(graph: fx.GraphModule) -> None:
    """Make a graph for a batch of any size one for a single sample.

    UserError where a tensor has another number of dimensions for one sample, as after `squeeze()`.
    """
    batch = _batch_of(graph)
    values: dict[fx.Node, Any] = {}
    with FakeTensorMode() as mode:
        for node in list(graph.graph.nodes):
            known = node.meta.get("val")
            if node.op == "placeholder":
                shape = [size if isinstance(size, int) else 1 for size in known.shape]
                values[node] = torch.empty(shape, dtype=known.dtype)
            elif node.op == "get_attr":
                held = attribute(graph, str(node.target))
                values[node] = mode.from_tensor(held) if isinstance(held, torch.Tensor) else held
            elif node.op == "call_function":
                values[node] = _called(node, values)
                _check_shape(node, values[node], batch)
            if isinstance(known, torch.SymInt):
                node.replace_all_uses_with(values[node])
            elif node.op != "output":
                node.meta["val"] = values[node]
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _check_shape(node: fx.Node, value: object, batch: torch.SymInt) -> None:
    if not isinstance(value, torch.Tensor):
        return
    expected = [_number(size, batch) for size in shape_of(node)]
    if list(value.shape) != expected:
        raise UserError(
            f"the shape {list(value.shape)} of a single sample is not that of other batches\n"
            f"  in the module {module_name(node)}, at {node.target}\n"
            f"  expected: {expected}      what to do: name the dimensions, as in squeeze(1)"
        )
