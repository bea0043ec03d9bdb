"""The nodes of a graph as steps: layers call their kernels, the rest is plain code."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.layer import Layer
from syno.inference.library import activations as activations
from syno.inference.library import pooling as pooling
from syno.inference.library import program as memory
from syno.inference.library import resample as resample
from syno.inference.library.language import check_types
from syno.inference.library.program import Address, Buffer, Call, Program, Step, Value, number
from syno.inference.library.registry import CODE
from syno.inference.library.registry import code as _code
from syno.inference.passes.clean import constants, only_user
from syno.inference.passes.epilogues import activation_of, batch_norm_of
from syno.inference.passes.layers import WHY
from syno.inference.trace import module_name

_aten = torch.ops.aten
# Activations by the names of epilogues, as structs of the runtime.
_ACTIVATIONS = {
    "relu": "Relu",
    "relu6": "Relu6",
    "silu": "Silu",
    "gelu": "Gelu",
    "gelu_tanh": "GeluTanh",
    "hardswish": "Hardswish",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "hardsigmoid": "Hardsigmoid",
}
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
}
RESHAPES = {_aten.reshape.default, _aten.view.default, _aten.flatten.using_ints}
_BINARY: dict[object, str] = {
    _aten.add.Tensor: "+",
    _aten.sub.Tensor: "-",
    _aten.mul.Tensor: "*",
    _aten.div.Tensor: "/",
    _aten.rsub.Scalar: "-",  # the other way round
}
# Elements of a row that a thread computes at once, so that long rows can be shared.
_RUN = 1024


def lower(graph: fx.GraphModule) -> Program:
    """The steps of a graph that was traced for a batch of one. UserError names what has no code."""
    return _Lowering(graph).run()


class _Lowering:
    def __init__(self, graph: fx.GraphModule) -> None:
        self.graph = graph
        self.held = constants(graph)
        self.modules = dict(graph.named_modules())
        self.program = Program()
        self.values: dict[fx.Node, Any] = {}

    def run(self) -> Program:
        for node in self.graph.graph.nodes:
            if node in self.values:
                continue
            if node.op == "placeholder":
                self.values[node] = self._input(node)
            elif node.op == "output":
                self._output(node)
            elif node.op == "call_module":
                self.values[node] = self._layer(node)
            elif node.op == "call_function":
                with _naming(node):
                    self._function(node)
        self.program.plan_memory()
        return self.program

    def _input(self, node: fx.Node) -> Value:
        meta = node.meta["val"]
        if self.program.input is not None:
            raise UserError(
                "the network has several inputs\n"
                "  expected: one, whose first dimension is the batch"
            )
        if meta.dtype not in (torch.float32, torch.int64):
            raise UserError(
                f"the network's input has the type {meta.dtype}\n"
                "  expected: torch.float32, or torch.int64 for token ids"
            )
        view = torch.empty(list(meta.shape), dtype=meta.dtype, device="meta")
        self.program.input = Value(Buffer(view.numel(), memory.INPUT), view)
        return self.program.input

    def _output(self, node: fx.Node) -> None:
        found = node.args[0]
        while isinstance(found, (list, tuple)) and len(found) == 1:
            found = found[0]
        if not isinstance(found, fx.Node) or not isinstance(self._get(found), Value):
            raise UserError("the network gives several outputs\n  expected: one tensor")
        value = self._get(found)
        if not _is_whole(value) or value.buffer.whole is not None:
            copy = self.program.new(value.shape)
            self._map(copy, [value], "a", "copy to the output")
            value = copy
        value.buffer.kind = memory.OUTPUT
        self.program.output = value

    def _get(self, node: object) -> Any:
        assert isinstance(node, fx.Node)
        if node not in self.values:
            assert node.op == "get_attr"
            self.values[node] = self.program.constant(self.held[node.name])
        return self.values[node]

    def _contiguous(self, value: Value) -> Value:
        if value.contiguous:
            return value
        copy = self.program.new(value.shape)
        self._map(copy, [value], "a", "copy in order")
        return copy

    def _step(
        self,
        code: Callable[[Address], str],
        reads: Sequence[Value],
        writes: Value,
        about: str,
    ) -> Value:
        self.program.steps.append(Step(code, tuple(reads), writes, about))
        return writes

    # --- layers ----------------------------------------------------------------------------------

    def _layer(self, node: fx.Node) -> Value:
        layer = self.modules[str(node.target)]
        assert isinstance(layer, Layer)
        operands = [self._contiguous(self._get(argument)) for argument in node.args]
        residual = operands[1] if len(operands) > 1 else None
        channel = layer.parts.channel
        held = None if channel is None else self.program.constant(channel)
        writes = self.program.new(node.meta["val"].shape)
        about = ", ".join([layer.name, *layer.parts.sources])
        number = len(self.program.layers)
        self.program.layers.append(layer)
        samples = 1 if layer.computation.operator.batch is None else operands[0].shape[0]
        call = Call(number, operands[0], held, residual, writes, about, samples)
        self.program.steps.append(call)
        return writes

    # --- plain code ------------------------------------------------------------------------------

    def _function(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            self.values[node] = self._get(node.args[0])[node.args[1]]
            return
        if node.target in VIEWS:
            self.values[node] = self._view(node)
            return
        if node.target in RESHAPES:
            value, shape = self._get(node.args[0]), list(node.meta["val"].shape)
            self.values[node] = self._reshaped(value, shape)
            return
        if node.target is not _aten.embedding.default:
            check_types(
                node,
                [v for n in node.all_input_nodes for v in [self._get(n)] if isinstance(v, Value)],
            )
        activation = activation_of(node)
        if activation is not None:
            self._mapped(node, f"{_ACTIVATIONS[activation]}::of(a)")
            return
        made = CODE.get(node.target)
        if made is None:
            why = f": {node.meta[WHY]}" if WHY in node.meta else ""
            raise UserError(
                f"the network library has no code for '{node.target}'{why}\n"
                "  what to do: use syno.compile, where it stays PyTorch, or the format aoti"
            )
        made(self, node)

    def _view(self, node: fx.Node) -> Any:
        value = self._get(node.args[0])
        made = node.target(value.view, *node.args[1:], **node.kwargs)  # type: ignore[operator]
        if isinstance(made, torch.Tensor):
            return Value(value.buffer, made)
        return [Value(value.buffer, each) for each in made]

    def _reshaped(self, value: Value, shape: list[int]) -> Value:
        try:
            return Value(value.buffer, value.view.view(shape))
        except RuntimeError:  # its rows are not side by side
            copy = self._contiguous(value)
            return Value(copy.buffer, copy.view.view(shape))

    def _mapped(self, node: fx.Node, expression: str, *more: Value) -> None:
        """The value of a node, as large as its first operand a; b, c, ... are the others."""
        x = self._get(node.args[0])
        y = self.program.new(x.shape)
        self.values[node] = self._map(y, [x, *more], expression, module_name(node))

    def _map(self, y: Value, operands: Sequence[Value], expression: str, about: str) -> Value:
        """y = expression of a, b, c, ...: the operands, which are broadcast."""
        views = [value.view.expand(y.view.shape) for value in operands]
        sizes, strides = _collapsed(list(y.shape), [list(v.stride()) for v in (y.view, *views)])
        inner = sizes[-1]
        blocks = -(-inner // _RUN)
        outer = math.prod(sizes[:-1])
        names = "abcdefgh"[: len(operands)]

        def place(at: str, of: list[int]) -> str:
            terms, below = [at], outer
            for size, stride in zip(sizes[:-1], of[:-1], strict=True):
                below //= size
                if stride and size > 1:
                    index = "i" if below == 1 else f"i / {below}"
                    index += f" % {size}" if below * size != outer else ""
                    terms.append(f"({index}) * {stride}")
            if blocks > 1 and of[-1]:
                terms.append(f"j * {of[-1]}")
            return " + ".join(terms)

        def code(at: Address) -> str:
            count = f"least({inner} - j, {_RUN})" if blocks > 1 else str(inner)
            from_ = [
                f"From<{of[-1] if inner > 1 else 0}>{{{place(at(v), of)}}}"
                for v, of in zip(operands, strides[1:], strict=True)
            ]
            index = f"u / {blocks}, j = u % {blocks} * {_RUN}" if blocks > 1 else "u"
            parameters = ", ".join(f"Vector {name}" for name in names)
            function = f"[]({parameters}) {{ return {expression}; }}"
            arguments = ", ".join([place(at(y), strides[0]), count, function, *from_])
            return (
                f"for (long u = team.begin({outer * blocks}); u < team.end({outer * blocks}); ++u) "
                f"{{\n  [[maybe_unused]] const long i = {index};\n  map_row({arguments});\n}}"
            )

        assert inner == 1 or strides[0][-1] == 1
        return self._step(code, operands, y, about)


@contextmanager
def _naming(node: fx.Node) -> Iterator[None]:
    """Errors name the module and the operator that a node comes from."""
    try:
        yield
    except UserError as error:
        head, _, rest = str(error).partition("\n")
        place = f"  in the module {module_name(node)}, at {node.target}"
        raise UserError("\n".join([head, place, *([rest] if rest else [])])) from error


def _collapsed(sizes: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Neighbouring dimensions as one, where they are for all of the strides."""
    kept: list[tuple[int, list[int]]] = []
    for d, size in enumerate(sizes):
        if size == 1:
            continue
        own = [of[d] for of in strides]
        if kept and all(a == b * size for a, b in zip(kept[-1][1], own, strict=True)):
            kept[-1] = (kept[-1][0] * size, own)
        else:
            kept.append((size, own))
    if not kept:
        kept = [(1, [0] * len(strides))]
    return [size for size, _ in kept], [[own[t] for _, own in kept] for t in range(len(strides))]


def _is_whole(value: Value) -> bool:
    """Whether a value is all of the memory of a step's result."""
    buffer = value.buffer
    return buffer.kind == memory.ARENA and value.contiguous and value.view.numel() == buffer.size


@_code(*_BINARY)
def _binary(self: _Lowering, node: fx.Node) -> None:
    operands: list[Value] = []
    terms: list[str] = []
    for argument in node.args[:2]:
        if isinstance(argument, fx.Node):
            terms.append("abcdefgh"[len(operands)])
            operands.append(self._get(argument))
        else:
            terms.append(f"splat({number(argument)})")  # type: ignore[arg-type]
    if "alpha" in node.kwargs:
        terms[1] = f"splat({number(node.kwargs['alpha'])}) * {terms[1]}"  # type: ignore[arg-type]
    if node.target is _aten.rsub.Scalar:
        terms.reverse()
    y = self.program.new(node.meta["val"].shape)
    sign = _BINARY[node.target]
    self.values[node] = self._map(y, operands, f"{terms[0]} {sign} {terms[1]}", module_name(node))


@_code(_aten.pow.Tensor_Scalar)
def _power(self: _Lowering, node: fx.Node) -> None:
    exponent = node.args[1]
    if not isinstance(exponent, (int, float)) or exponent not in (2, 3):
        raise UserError(f"the network library has no code for the power {exponent}")
    self._mapped(node, " * ".join("a" * int(exponent)))


@_code(_aten._native_batch_norm_legit_no_training.default)
def _batch_norm(self: _Lowering, node: fx.Node) -> None:
    found = batch_norm_of(node, self.held)
    if found is None:
        raise UserError("the BatchNorm has no constant statistics")
    x = self._get(node.args[0])
    over = [1, -1, *[1] * (x.view.dim() - 2)]
    scale, shift = (self.program.constant(t) for t in found)
    operands = [x, *(Value(v.buffer, v.view.view(over)) for v in (scale, shift))]
    y = self.program.new(x.shape)
    expression, made = "a * b + c", [node]
    value = only_user(node)
    following = None if value is None else only_user(value)
    activation = None if following is None else activation_of(following)
    if following is not None and activation is not None:
        expression = f"{_ACTIVATIONS[activation]}::of({expression})"
        made.append(following)
    self._map(y, operands, expression, ", ".join(module_name(n) for n in made))
    if following is not None and activation is not None:
        self.values[following] = y
    self.values[node] = [y, None, None]


@_code(_aten.cat.default)
def _cat(self: _Lowering, node: fx.Node) -> None:
    parts: Sequence[fx.Node] = node.args[0]  # type: ignore[assignment]
    y = self.program.new(node.meta["val"].shape)
    dimension = int(node.args[1]) if len(node.args) > 1 else 0  # type: ignore[arg-type]
    values = [self._get(part) for part in parts]
    begin = 0
    for place, value in enumerate(values):
        size = value.shape[dimension]
        slot = Value(y.buffer, y.view.narrow(dimension, begin, size))
        begin += size
        if slot.contiguous:
            _place(y.buffer, int(slot.view.storage_offset()), values[place:])
            if value.buffer.root is y.buffer and value.buffer.place == slot.view.storage_offset():
                continue
        self._map(slot, [value], "a", module_name(node))
    self.values[node] = y


def _place(joined: Buffer, offset: int, values: Sequence[Value]) -> None:
    """Makes the first tensor be computed in the joined one, where it has memory of its own.

    Or the joined tensor of an earlier step, which the first tensors are the parts of.
    """
    root = values[0].buffer.root
    if root.kind != memory.ARENA or root is joined:
        return
    filled = 0
    for value in values:
        if not _is_whole(value) or value.buffer.root is not root or value.buffer.place != filled:
            break
        filled += value.buffer.size
    if filled == root.size:
        root.put_into(joined, offset)


@_code(_aten.constant_pad_nd.default, _aten.pad.default)
def _pad(self: _Lowering, node: fx.Node) -> None:
    given = [*node.args[1:], *node.kwargs.values()]
    if any(each not in (None, 0, "constant") for each in given[1:]):
        raise UserError(f"the network library has no code for padding by {given[1:]}")
    amounts: Sequence[int] = given[0]  # type: ignore[assignment]
    x = self._get(node.args[0])
    y = self.program.new(node.meta["val"].shape)
    self._map(y, [], "Vector{}", f"{module_name(node)} (zeros)")
    inside = y.view
    for i, (before, size) in enumerate(zip(amounts[0::2], reversed(x.shape), strict=False)):
        inside = inside.narrow(-1 - i, before, size)
    self._map(Value(y.buffer, inside), [x], "a", f"{module_name(node)} (padded)")
    self.values[node] = y


@_code(_aten.mean.dim)
def _mean(self: _Lowering, node: fx.Node) -> None:
    x = self._get(node.args[0])
    rank = x.view.dim()
    dims = sorted(d % rank for d in node.args[1])  # type: ignore[union-attr]
    rest = [d for d in range(rank) if d not in dims]
    moved = self._contiguous(Value(x.buffer, x.view.permute([*rest, *dims])))
    y = self.program.new(node.meta["val"].shape)
    length = math.prod(x.shape[d] for d in dims)
    rows = y.view.numel()
    self.values[node] = self._step(
        lambda at: f"mean_of_rows({at(moved)}, {at(y)}, {rows}, {length}, team);",
        [moved],
        y,
        module_name(node),
    )


@_code(_aten.sum.dim_IntList)
def _sum(self: _Lowering, node: fx.Node) -> None:
    if not node.args[1]:
        raise UserError("the network library has no code for a sum over all dimensions")
    _mean(self, node)
    mean, x = self.values[node], self._get(node.args[0])
    y = self.program.new(mean.shape)
    count = number(x.view.numel() // mean.view.numel())
    self.values[node] = self._map(y, [mean], f"a * splat({count})", module_name(node))


@_code(_aten.layer_norm.default)
def _layer_norm(self: _Lowering, node: fx.Node) -> None:
    x = self._contiguous(self._get(node.args[0]))
    given = [*node.args[2:], *[None] * 3][:3]
    weight, bias = (None if each is None else self._get(each) for each in given[:2])
    epsilon = 1e-5 if given[2] is None else float(given[2])  # type: ignore[arg-type]
    y = self.program.new(x.shape)
    length = math.prod(node.args[1])  # type: ignore[arg-type]
    rows = y.view.numel() // length
    reads = [v for v in (x, weight, bias) if v is not None]

    def code(at: Address) -> str:
        held = ", ".join("nullptr" if v is None else at(v) for v in (weight, bias))
        sizes = f"{rows}, {length}, {number(epsilon)}"
        return f"layer_norm({at(x)}, {held}, {at(y)}, {sizes}, team);"

    self.values[node] = self._step(code, reads, y, module_name(node))


@_code(_aten.softmax.int)
def _softmax(self: _Lowering, node: fx.Node) -> None:
    x = self._contiguous(self._get(node.args[0]))
    if int(node.args[1]) % x.view.dim() != x.view.dim() - 1:  # type: ignore[arg-type]
        raise UserError(
            "the network library has no code for a softmax over another dimension than the last one"
        )
    y = self.program.new(x.shape)
    rows, length = y.view.numel() // x.shape[-1], x.shape[-1]
    self.values[node] = self._step(
        lambda at: f"softmax({at(x)}, {at(y)}, {rows}, {length}, team);",
        [x],
        y,
        module_name(node),
    )
