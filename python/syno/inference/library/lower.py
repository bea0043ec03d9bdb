"""The nodes of a graph as steps: layers call their kernels, the rest is plain code."""

from __future__ import annotations

import operator
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import fx
from torch.utils._pytree import tree_leaves, tree_map_only

from syno._util.errors import InternalError, UserError, first_line
from syno.inference.codes import ROUND, codes_of, inside
from syno.inference.layer import TracedLayer
from syno.inference.library import activations as activations
from syno.inference.library import elementwise as elementwise
from syno.inference.library import joins as joins
from syno.inference.library import language as language
from syno.inference.library import norms as norms
from syno.inference.library import places as places
from syno.inference.library import pooling as pooling
from syno.inference.library import program as memory
from syno.inference.library import reductions as reductions
from syno.inference.library import resample as resample
from syno.inference.library.activations import ACTIVATION
from syno.inference.library.builder import (
    INSTEAD,
    Builder,
    check_operands,
    check_whole,
    first_result,
    rounding_of,
    type_of,
)
from syno.inference.library.program import Buffer, CalledLayer, KernelCall, Program, Value
from syno.inference.library.registry import CODE, Lowering
from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.clean import constants, only_user
from syno.inference.passes.epilogues import activation_of
from syno.inference.passes.layers import WHY
from syno.inference.trace import module_name

_aten = torch.ops.aten
VIEWS = {
    _aten.permute.default,
    _aten.transpose.int,
    _aten.t.default,
    _aten.expand.default,
    _aten.unsqueeze.default,
    _aten.squeeze.dim,
    _aten.squeeze.dims,
    _aten.squeeze.default,
    _aten.select.int,
    _aten.slice.Tensor,
    _aten.split.Tensor,
    _aten.split_with_sizes.default,
    _aten.chunk.default,
    _aten.unbind.int,
    _aten.narrow.default,
    _aten.diagonal.default,
    _aten.unfold.default,
}
RESHAPES = {_aten.reshape.default, _aten.view.default, _aten.flatten.using_ints}


# Types that token ids may have; a program takes them as int64.
IDS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
# No token id is above it.
_MOST_TOKENS = (1 << 63) - 1


def lower(
    graph: fx.GraphModule,
    *,
    layers: Mapping[str, TracedLayer] | None = None,
    shared: Container[str] = (),
) -> Program:
    """The steps of a graph that was traced for a batch of one. UserError names what has no code.

    layers: by the names of their modules; by default those of the graph. shared: the names of the
    inputs that are the same for all images.
    """
    return _Lowering(graph, layers, shared).run()


def nodes_with_code(graph: fx.GraphModule, layers: Mapping[str, TracedLayer]) -> set[fx.Node]:
    """The nodes of a graph, which was traced for a batch of one, that a program can compute."""
    lowering = _Lowering(graph, layers, ())
    calls = [node for node in graph.graph.nodes if node.op in ("call_module", "call_function")]
    for node in graph.graph.find_nodes(op="placeholder"):
        lowering.try_node(node)
    found = {node for node in calls if lowering.try_node(node) is None}
    # Several results of one node stay together.
    several = {n.args[0] for n in graph.graph.nodes if n.target is operator.getitem}
    for node in several:
        if node not in found or not found.issuperset(node.users):
            found -= {node, *node.users}
    return found


class Uncovered(NamedTuple):
    """A node that `lower` has no code for: its operator, the module that it is in, and why."""

    operator: str
    module: str
    reason: str


def uncovered(graph: fx.GraphModule) -> list[Uncovered]:
    """All nodes of such a graph that have no code, in order; `lower` names the first of them."""
    lowering = _Lowering(graph, None, ())
    tried = [(node, lowering.try_node(node)) for node in graph.graph.nodes]
    return [
        Uncovered(str(node.target), module_name(node), first_line(error))
        for node, error in tried
        if error is not None
    ]


class _Lowering(Builder):
    def __init__(
        self,
        graph: fx.GraphModule,
        layers: Mapping[str, TracedLayer] | None,
        shared: Container[str],
    ) -> None:
        super().__init__(constants(graph))
        self.graph = graph
        self.shared = shared
        held = dict(graph.named_modules()) if layers is None else layers
        self.layers = {name: each for name, each in held.items() if isinstance(each, TracedLayer)}
        self.numbers: dict[tuple[object, ...], int] = {}

    def run(self) -> Program:
        for node in self.graph.graph.nodes:
            if node in self.values:
                continue
            if node.op == "placeholder":
                self.values[node] = self._input(node)
            elif node.op == "output":
                self._output(node)
            else:
                self._visit(node)
        self.program.plan_memory()
        return self.program

    def try_node(self, node: fx.Node) -> UserError | None:
        """Lower a node; why it has no code. What follows reads its values as inputs then."""
        if node in self.values or node.op in ("get_attr", "output"):
            return None
        try:
            if node.op == "placeholder":
                self.values[node] = self._input(node)
            else:
                self._visit(node)
        except UserError as error:
            self.values[node] = tree_map_only(torch.Tensor, self._outside, node.meta.get("val"))
            return error
        return None

    def _visit(self, node: fx.Node) -> None:
        if node.op == "call_module":
            with _naming(node):
                self.values[node] = self._layer(node)
        elif node.op == "call_function":
            with _naming(node):
                self._function(node)

    def _outside(self, meta: torch.Tensor) -> Value:
        """A value that something else computes."""
        ids = meta.dtype in IDS
        dtype = torch.int64 if ids else meta.dtype
        view = torch.empty(list(meta.shape), dtype=dtype, device="meta")
        buffer = Buffer(view.numel(), memory.INPUT, number=len(self.program.inputs))
        self.program.inputs.append(Value(buffer, view))
        if ids:
            self.program.tokens[buffer.number] = _MOST_TOKENS
        return self.program.inputs[-1]

    def _input(self, node: fx.Node) -> Value:
        meta = node.meta["val"]
        if meta.dtype not in (torch.float32, *IDS):
            raise UserError(
                f"the network's input has the type {meta.dtype}\n"
                "  expected: torch.float32, or torch.int64 for token ids"
            )
        value = self._outside(meta)
        if node.name in self.shared:
            self.program.shared.add(value.buffer.number)
        return value

    def _output(self, node: fx.Node) -> None:
        for number, found in enumerate(tree_leaves(node.args[0])):
            if found is None:
                continue
            if not isinstance(found, fx.Node) or not isinstance(self.given(found), Value):
                raise UserError(
                    f"result {number} of the network is no tensor\n  expected: tensors of float32"
                )
            value = self.get(found)
            check_whole(value)
            if value.view.dtype != torch.float32:
                raise UserError(f"the network gives {type_of(value)}\n  expected: torch.float32")
            if not value.is_whole or value.buffer.whole is not None:
                copy = self.program.new(value.shape)
                self.map(copy, [value], "a", "copy to the output")
                value = copy
            value.buffer.kind, value.buffer.number = memory.OUTPUT, len(self.program.outputs)
            self.program.outputs.append(value)
        if not self.program.outputs:
            raise UserError("the network gives no tensor\n  expected: one or several")

    # --- layers ----------------------------------------------------------------------------------

    def _layer(self, node: fx.Node) -> Value:
        layer = self.layers.get(str(node.target))
        if layer is None:
            raise UserError("the network library has no code for a layer that stays PyTorch")
        about = ", ".join([layer.name, *layer.parts.sources])
        shape = list(node.meta["val"].shape)
        if layer.codes is None:
            operands = [self.contiguous(self.get(argument)) for argument in node.args]
            check_operands(operands)
            channel, writes, called = (
                layer.held_channel,
                self.program.new(shape),
                CalledLayer(layer),
            )
        else:
            order = inside(len(shape), layer.channel)
            given = [self.stored(argument) for argument in node.args]
            rounding = rounding_of(node)
            if rounding is not None and any(value.codes is None for value in given[1:]):
                rounding = None  # a residual is stored as the result is
            codes = None if rounding is None else rounding[1]
            added = [None if codes is None else value.codes for value in given[1:]]
            operands = [
                self.laid(value, kept, order, about)
                for value, kept in zip(given, (layer.codes.x, *added), strict=True)
            ]
            writes = self.program.new(shape, codes=codes, order=order)
            channel = layer.codes.channel(
                layer.channels, layer.parts.scale, layer.parts.bias, (*added, None)[0], codes
            )
            called = CalledLayer(layer, inside=True, codes=codes is not None)
            if rounding is not None:
                self.values[rounding[0]] = writes
        residual = operands[1] if len(operands) > 1 else None
        held = None if channel is None else self.program.constant(channel)
        number = self._number(called)
        operator = layer.computation.operator
        samples = 1 if operator.batch is None else operands[0].shape[0]
        shapes = operator.shapes(layer.computation.binding)
        for value, sizes in ((operands[0], shapes.input), (writes, shapes.output)):
            expected = list(sizes) if operator.batch is None else [samples, *sizes[1:]]
            if value.shape != expected:
                raise InternalError(f"the layer {layer.name} of {expected} has {value.shape}")
        if residual is not None and residual.shape != writes.shape:
            raise InternalError(f"the layer {layer.name} adds {residual.shape} to {writes.shape}")
        call = KernelCall(number, operands[0], held, residual, writes, about, samples)
        self.program.steps.append(call)
        return writes

    def _number(self, called: CalledLayer) -> int:
        """The number of a layer; that of an earlier one with the same weights, as in a loop."""
        places = [(w.data_ptr(), tuple(w.shape), w.stride()) for w in called.layer.weights]
        name = (*called.key, *places)
        if name not in self.numbers:
            self.numbers[name] = len(self.program.layers)
            self.program.layers.append(called)
        return self.numbers[name]

    # --- plain code ------------------------------------------------------------------------------

    def _function(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            parts, place = self.given(node.args[0]), node.args[1]
            if not isinstance(parts, (list, tuple)) or not isinstance(place, int):
                raise UserError(f"the network library has no code for a part of '{node.args[0]}'")
            part = parts[place]
            if part is None:
                raise UserError(
                    f"the network library has no code for result {place} of '{node.args[0].target}'"  # type: ignore[union-attr]
                )
            self.values[node] = part
        elif node.target in VIEWS:
            self.values[node] = self._view(node)
        elif node.target in RESHAPES:
            value, shape = self.stored(node.args[0]), list(node.meta["val"].shape)
            self.values[node] = self.reshaped(value, shape)
        elif node.target is ROUND:
            self.values[node] = self._rounded(node)
        else:
            self._compute(node)

    def _rounded(self, node: fx.Node) -> Value:
        source, codes = codes_of(node)
        value = self.stored(source)
        check_operands([value])
        check_whole(value)
        return self.rounded(node, value, codes, _order(node, value))

    def _compute(self, node: fx.Node) -> None:
        made = CODE.get(node.target) if activation_of(node) is None else ACTIVATION
        if made is None:
            why = f": {node.meta[WHY]}" if WHY in node.meta else ""
            raise UserError(
                f"the network library has no code for '{node.target}'{why}\n  {INSTEAD}"
            )
        several = isinstance(node.meta["val"], (list, tuple))
        result = first_result(node)
        self._check_types(node, result, made)
        given = NodeArguments(node)
        found = made.compute(self, node, given)
        if given.unread:
            raise UserError(
                f"the network library has no code for the argument '{given.unread[0]}' of "
                f"'{node.target}'\n  {INSTEAD}"
            )
        if found.shape != list(result.shape):
            raise InternalError(f"'{node.target}' gives {found.shape}, not {list(result.shape)}")
        self.values[node] = [found, *[None] * (len(node.meta["val"]) - 1)] if several else found

    def _check_types(self, node: fx.Node, result: torch.Tensor, made: Lowering) -> None:
        operands = [self.stored(each) for each in node.all_input_nodes]
        if not made.ids:
            check_operands(operands)
        if result.dtype != (torch.bool if made.truth else torch.float32):
            raise UserError(
                f"the network library has no code for '{node.target}' that gives {result.dtype}"
                f"\n  {INSTEAD}"
            )
        if not made.empty:
            for each in operands:
                check_whole(each)

    def _view(self, node: fx.Node) -> Value | list[Value | None]:
        value = self.stored(node.args[0])
        made = node.target(value.view, *node.args[1:], **node.kwargs)  # type: ignore[operator]
        if isinstance(made, torch.Tensor):
            return Value(value.buffer, made)
        return [Value(value.buffer, each) for each in made]


def _order(node: fx.Node, value: Value) -> Sequence[int]:
    """The order in memory in which the first layer behind a node reads its codes.

    Without one, that in which it can be reshaped without a copy, where it is next; or that of a map
    with channels inside, or else row by row.
    """
    rank, graph = value.view.dim(), node.graph.owning_module
    assert graph is not None
    for user in node.users:
        if user.op == "call_module":
            layer = graph.get_submodule(str(user.target))
            if isinstance(layer, TracedLayer):
                return inside(rank, layer.channel)
    if (order := _order_of_reshape(node, rank)) is not None:
        return order
    return inside(rank, 1) if rank > 3 else tuple(range(rank))


def _order_of_reshape(node: fx.Node, rank: int) -> Sequence[int] | None:
    """The order of the dimensions of a node where they are reshaped, perhaps transposed before."""
    order = list(range(rank))
    while (user := only_user(node)) is not None:
        if user.target in RESHAPES:
            return order
        if user.target is _aten.permute.default:
            order = [order[d] for d in user.args[1]]  # type: ignore[union-attr, index, misc]
        elif user.target is _aten.transpose.int:
            a, b = user.args[1:]
            order[a], order[b] = order[b], order[a]  # type: ignore[index]
        else:
            return None
        node = user
    return None


@contextmanager
def _naming(node: fx.Node) -> Iterator[None]:
    """Errors name the module and the operator that a node comes from."""
    try:
        yield
    except UserError as error:
        head, _, rest = str(error).partition("\n")
        place = f"  in the module {module_name(node)}, at {node.target}"
        raise UserError("\n".join([head, place, *([rest] if rest else [])])) from error
