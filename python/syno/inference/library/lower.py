"""The nodes of a graph as steps: layers call their kernels, the rest is plain code."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

from syno._util.errors import InternalError, UserError
from syno.inference.layer import Layer
from syno.inference.library import activations as activations
from syno.inference.library import elementwise as elementwise
from syno.inference.library import joins as joins
from syno.inference.library import language as language
from syno.inference.library import norms as norms
from syno.inference.library import pooling as pooling
from syno.inference.library import program as memory
from syno.inference.library import reductions as reductions
from syno.inference.library import resample as resample
from syno.inference.library.activations import ACTIVATION
from syno.inference.library.program import Address, Buffer, Call, Program, Step, Value
from syno.inference.library.registry import CODE, Code, first_result
from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.clean import constants
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
_INSTEAD = "what to do: use syno.compile, where it stays PyTorch, or the format aoti"
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
                with _naming(node):
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
        _check_whole(value)
        if value.view.dtype != torch.float32:
            raise UserError(f"the network gives {_type(value)}\n  expected: torch.float32")
        if not value.is_whole or value.buffer.whole is not None:
            copy = self.program.new(value.shape)
            self._map(copy, [value], "a", "copy to the output")
            value = copy
        value.buffer.kind = memory.OUTPUT
        self.program.output = value

    def _get(self, node: object) -> Any:
        assert isinstance(node, fx.Node)
        if node not in self.values:
            if node.name not in self.held:
                raise UserError(
                    f"the network library has no code for what '{node.name}' stands for"
                )
            self.values[node] = self.program.constant(self.held[node.name])
        return self.values[node]

    def _contiguous(self, value: Value) -> Value:
        if value.contiguous:
            return value
        copy = self.program.new(value.shape, value.view.dtype)
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
        _check_operands(operands)
        residual = operands[1] if len(operands) > 1 else None
        channel = layer.parts.channel
        held = None if channel is None else self.program.constant(channel)
        writes = self.program.new(node.meta["val"].shape)
        about = ", ".join([layer.name, *layer.parts.sources])
        number = len(self.program.layers)
        self.program.layers.append(layer)
        operator = layer.computation.operator
        samples = 1 if operator.batch is None else operands[0].shape[0]
        shapes = operator.shapes(layer.computation.binding)
        for value, sizes in ((operands[0], shapes.input), (writes, shapes.output)):
            expected = list(sizes) if operator.batch is None else [samples, *sizes[1:]]
            if value.shape != expected:
                raise InternalError(f"the layer {layer.name} of {expected} has {value.shape}")
        if residual is not None and residual.shape != writes.shape:
            raise InternalError(f"the layer {layer.name} adds {residual.shape} to {writes.shape}")
        call = Call(number, operands[0], held, residual, writes, about, samples)
        self.program.steps.append(call)
        return writes

    # --- plain code ------------------------------------------------------------------------------

    def _function(self, node: fx.Node) -> None:
        if node.target is operator.getitem:
            self.values[node] = self._get(node.args[0])[node.args[1]]
            if self.values[node] is None:
                raise UserError(
                    f"the network library has no code for result {node.args[1]} of "
                    f"'{node.args[0].target}'"  # type: ignore[union-attr]
                )
        elif node.target in VIEWS:
            self.values[node] = self._view(node)
        elif node.target in RESHAPES:
            value, shape = self._get(node.args[0]), list(node.meta["val"].shape)
            self.values[node] = self._reshaped(value, shape)
        else:
            self._compute(node)

    def _compute(self, node: fx.Node) -> None:
        made = CODE.get(node.target) if activation_of(node) is None else ACTIVATION
        if made is None:
            why = f": {node.meta[WHY]}" if WHY in node.meta else ""
            raise UserError(
                f"the network library has no code for '{node.target}'{why}\n  {_INSTEAD}"
            )
        several = isinstance(node.meta["val"], (list, tuple))
        result = first_result(node)
        self._check_types(node, result, made)
        given = NodeArguments(node)
        found = made.compute(self, node, given)
        if given.unread:
            raise UserError(
                f"the network library has no code for the argument '{given.unread[0]}' of "
                f"'{node.target}'\n  {_INSTEAD}"
            )
        if found.shape != list(result.shape):
            raise InternalError(f"'{node.target}' gives {found.shape}, not {list(result.shape)}")
        self.values[node] = [found, *[None] * (len(node.meta["val"]) - 1)] if several else found

    def _check_types(self, node: fx.Node, result: torch.Tensor, made: Code) -> None:
        operands = [self._get(each) for each in node.all_input_nodes]
        if not made.ids:
            _check_operands(operands)
        if result.dtype != (torch.bool if made.truth else torch.float32):
            raise UserError(
                f"the network library has no code for '{node.target}' that gives {result.dtype}"
                f"\n  {_INSTEAD}"
            )
        if not made.empty:
            for each in operands:
                _check_whole(each)

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

    def _mapped(self, node: fx.Node, expression: str, *operands: Value) -> Value:
        """The value of a node by an expression of its operands a, b, c, ..., broadcast."""
        result = first_result(node)
        y = self.program.new(result.shape, result.dtype)
        return self._map(y, operands, expression, module_name(node))

    def _map(self, y: Value, operands: Sequence[Value], expression: str, about: str) -> Value:
        """y = expression of a, b, c, ...: the operands, which are broadcast."""
        if y.view.numel() == 0:
            return y
        views = [value.view.expand(y.view.shape) for value in operands]
        sizes, strides = _collapsed(list(y.shape), [list(v.stride()) for v in (y.view, *views)])
        if sizes[-1] > 1 and strides[0][-1] != 1:  # elements of the result that lie apart
            sizes, strides = [*sizes, 1], [[*of, 0] for of in strides]
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

        return self._step(code, operands, y, about)


def _type(value: Value) -> str:
    return "token ids" if value.view.dtype == torch.int64 else str(value.view.dtype)


def _check_operands(values: Iterable[Value]) -> None:
    """UserError for token ids, which only embeddings and views read."""
    for value in values:
        if value.view.dtype not in (torch.float32, torch.bool):
            raise UserError(f"the network library computes nothing of {_type(value)}\n  {_INSTEAD}")


def _check_whole(value: Value) -> None:
    if value.view.numel() == 0:
        raise UserError(
            "the network library has no code for a tensor without elements\n"
            f"  got: the shape {value.shape}"
        )


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
