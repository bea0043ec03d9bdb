"""The graph of a program of torch.export in fewer kinds of operators, none of which is in place."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch._ops import HigherOrderOperator, OpOverload
from torch.export import ExportedProgram
from torch.fx.experimental.proxy_tensor import make_fx

from syno.inference.node_arguments import NodeArguments

Table = dict[Any, Callable[..., object]]

_aten = torch.ops.aten
_DROPOUTS = (_aten.dropout, _aten.feature_dropout, _aten.dropout_, _aten.feature_dropout_)
# Operators in place that compute what the operator of this name does, for elements of one type.
# fmt: off
_IN_PLACE = {
    "abs", "add", "clamp", "clamp_max", "clamp_min", "cos", "div", "elu", "exp", "hardsigmoid",
    "hardswish", "hardtanh", "leaky_relu", "log", "mish", "mul", "neg", "reciprocal", "relu",
    "relu6", "rsqrt", "sigmoid", "silu", "sin", "sqrt", "square", "sub", "tanh",
}
# fmt: on


def decomposed(
    program: ExportedProgram, module: fx.GraphModule, table: Table
) -> tuple[fx.GraphModule, str]:
    """The graph of a program, in which operators of `table` are what it says, composite operators
    that may return their arguments are their parts, and no operator is in place.

    `ExportedProgram.run_decompositions` does so, and computes all shapes anew, which takes seconds
    for a large network. Here each node is one of these:

    - one that stays, with the shape that it has;
    - an operator in place on a tensor that nothing else sees: the operator of the same name;
    - one that is taken apart: what it does is traced, for this node alone.

    A program that has other nodes is left to `run_decompositions`.

    Args:
        program: the program.
        module: the program as a module, without guards, which takes a while to make.
        table: functions of the same values, by the operators that they stand for.

    Returns:
        The graph, and the name of a buffer that a call changes, or "".
    """
    try:
        graph, changed = _Decomposed(module.graph, table).graph, ""
    except _NotUnderstood:
        program = program.run_decompositions(table)
        module = program.module(check_guards=False)
        graph = module.graph
        changed = min(program.graph_signature.buffers_to_mutate.values(), default="")
    # An ordinary module, which can be copied and called.
    return fx.GraphModule(module, graph), changed


class _NotUnderstood(Exception):
    """A node that is none of those that are known here."""


class _Decomposed:
    """A copy of a graph, made node by node. Each of its nodes is a tensor in memory of its own, or
    a view of those before it."""

    def __init__(self, graph: fx.Graph, table: Table) -> None:
        self._table = table
        self._values: dict[fx.Node, Any] = {}
        self.graph = fx.Graph(tracer_cls=graph._tracer_cls)
        self.graph._codegen = graph._codegen
        inputs = [node for node in graph.nodes if node.op in ("placeholder", "get_attr")]
        if not all("val" in node.meta for node in inputs):
            raise _NotUnderstood  # a graph, which is what a part in another mode is
        for node in inputs:
            self._values[node] = self._copied(node)
        symbols = _symbols(inputs)
        self._sizes = {
            symbol: self._size(self._values[node], dim) for symbol, (node, dim) in symbols.items()
        }
        for node in graph.nodes:
            if node not in self._values:
                is_call = node.op == "call_function"
                self._values[node] = self._call(node) if is_call else self._copied(node)
        self.graph.eliminate_dead_code(lambda node: node.is_impure() and not draws(node))
        if _symbols(inputs).keys() != symbols.keys():
            raise RuntimeError("a composite operator fixes the size of an input")

    def _call(self, node: fx.Node) -> Any:
        target = node.target
        if not isinstance(target, OpOverload):
            return self._of_python(node)
        if target is _aten.sym_size.int and (known := self._sizes.get(_symbol(node.meta["val"]))):
            return known
        if target is _aten.detach_.default or _is_unused_dropout(target, node):
            return self._value(node.args[0])
        if target is _aten.lift_fresh_copy.default:
            return self._made(node, _aten.clone.default)
        if target._schema.is_mutable:
            return self._in_place(target, node)
        if target is _aten.batch_norm.default and not NodeArguments(node)["training"]:
            return self._batch_norm(node)
        if target in self._table:
            return self._parts(self._table[target], node)
        if _is_composite(target) and _may_return_arguments(target):
            return self._parts(target, node)
        return self._copied(node)

    def _of_python(self, node: fx.Node) -> Any:
        """An element of a result, or a computation with sizes."""
        if isinstance(node.target, HigherOrderOperator):
            raise _NotUnderstood
        if node.target is operator.getitem:
            results, place = self._value(node.args[0]), node.args[1]
            if isinstance(results, Sequence) and isinstance(place, int):
                return results[place]
        return self._copied(node)

    def _value(self, argument: object) -> Any:
        assert isinstance(argument, fx.Node)
        return self._values[argument]

    def _copied(self, node: fx.Node) -> fx.Node:
        return self.graph.node_copy(node, self._values.__getitem__)

    def _size(self, node: fx.Node, dim: int) -> fx.Node:
        made = self.graph.call_function(_aten.sym_size.int, (node, dim))
        made.meta["val"] = node.meta["val"].shape[dim]
        return made

    def _made(self, node: fx.Node, target: OpOverload) -> fx.Node:
        """Another operator in the place of a node, with the same arguments."""
        args, kwargs = fx.map_arg((node.args, node.kwargs), self._values.__getitem__)
        made = self.graph.call_function(target, args, kwargs)
        made.meta = dict(node.meta)
        return made

    def _in_place(self, target: OpOverload, node: fx.Node) -> fx.Node:
        """The operator that computes what this one leaves in its first argument: who asks for what
        is there asks for its result from here on."""
        changed = self._value(node.args[0])
        name = target._schema.name.removeprefix("aten::").removesuffix("_")
        values = (each.meta["val"] for each in node.all_input_nodes)
        types = {each.dtype for each in values if isinstance(each, torch.Tensor)}
        if name not in _IN_PLACE or len(types) > 1:
            raise _NotUnderstood
        if not all(map(_has_own_result, (changed, *changed.users))):
            raise _NotUnderstood
        made = self._made(node, getattr(getattr(_aten, name), target._overloadname))
        for before, value in self._values.items():
            if value is changed:
                self._values[before] = made
        return made

    def _batch_norm(self, node: fx.Node) -> fx.Node:
        """By the statistics of the training."""
        made = self._made(node, _aten._native_batch_norm_legit_no_training.default)
        made.args = (*made.args[:5], *made.args[6:8])
        found = node.meta["val"]
        made.meta["val"] = (found, found.new_empty(0), found.new_empty(0))
        element = self.graph.call_function(operator.getitem, (made, 0))
        element.meta = dict(node.meta)
        return element

    def _parts(self, function: Callable[..., object], node: fx.Node) -> Any:
        """What a composite operator consists of, or a function of the table in its place."""
        inputs = node.all_input_nodes

        def call(*values: Any) -> Any:
            known = dict(zip(inputs, values, strict=True))
            args, kwargs = fx.map_arg((node.args, node.kwargs), known.__getitem__)
            return function(*args, **kwargs)

        given = [each.meta["val"] for each in inputs]
        # What is made of sizes alone is as fake as what is given.
        fake = detect_fake_mode(given) or contextlib.nullcontext()
        with enable_python_dispatcher(), fake:
            # What a function calls is whole before it is dispatched.
            traced = make_fx(call, pre_dispatch=function is not node.target)
            graph = traced(*given).graph
        values = (self._values[each] for each in inputs)
        for each in graph.nodes:
            if each.op == "placeholder":
                self._values[each] = next(values)
            elif each.op == "call_function":
                each.meta = {**node.meta, **each.meta}
                self._values[each] = self._call(each)
            elif each.op != "output":
                raise _NotUnderstood
        return fx.map_arg(graph.output_node().args[0], self._values.__getitem__)


def draws(node: fx.Node) -> bool:
    """Whether a node draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())


def _symbols(inputs: Sequence[fx.Node]) -> dict[object, tuple[fx.Node, int]]:
    """The sizes of inputs that are not fixed, and where they are first."""
    found: dict[object, tuple[fx.Node, int]] = {}
    for node in inputs:
        for dim, size in enumerate(node.meta["val"].shape):
            if (symbol := _symbol(size)) is not None:
                found.setdefault(symbol, (node, dim))
    return found


def _symbol(size: object) -> object:
    """A size that is not fixed as a symbol; None for others, and for what is computed of sizes."""
    if not isinstance(size, torch.SymInt):
        return None
    found = size.node.expr
    return found if found.is_Symbol else None


def _is_composite(target: OpOverload) -> bool:
    composite = "CompositeImplicitAutograd"
    return torch._C._dispatch_has_kernel_for_dispatch_key(target.name(), composite)


def _may_return_arguments(target: OpOverload) -> bool:
    """Whether the result of an operator may be a view of its arguments, or one of them."""
    views = any(result.alias_info for result in target._schema.returns)
    return views or torch.Tag.maybe_aliasing_or_mutating in target.tags


def _is_unused_dropout(target: OpOverload, node: fx.Node) -> bool:
    return target.overloadpacket in _DROPOUTS and not NodeArguments(node)["train"]


def _has_own_result(node: fx.Node) -> bool:
    """Whether the result of a node is in memory of its own."""
    if node.target is operator.getitem:
        (node,) = node.all_input_nodes
        return _has_own_result(node)
    return isinstance(node.target, OpOverload) and not _may_return_arguments(node.target)
