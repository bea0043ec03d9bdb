"""What the code of an operator of the network library is built with: values, steps, maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.library.program import Address, Program, TeamStep, Value
from syno.inference.trace import module_name

INSTEAD = "what to do: use syno.compile, where it stays PyTorch, or the format aoti"
# Elements of a row that a thread computes at once, so that long rows can be shared.
_RUN = 1024


class Builder:
    """The program of a graph, as far as it is written.

    held: what the graph holds, by name. values: of the nodes so far; a list where a node gives
    several tensors. An operator that computes its user, too, sets the value of both.
    """

    def __init__(self, held: dict[str, torch.Tensor]) -> None:
        self.held = held
        self.program = Program()
        self.values: dict[fx.Node, Any] = {}

    def get(self, node: object) -> Any:
        """The value of a node."""
        assert isinstance(node, fx.Node)
        if node not in self.values:
            if node.name not in self.held:
                raise UserError(
                    f"the network library has no code for what '{node.name}' stands for"
                )
            self.values[node] = self.program.constant(self.held[node.name])
        return self.values[node]

    def contiguous(self, value: Value) -> Value:
        """The value, or a copy whose elements lie in order."""
        if value.contiguous:
            return value
        copy = self.program.new(value.shape, value.view.dtype)
        self.map(copy, [value], "a", "copy in order")
        return copy

    def step(
        self,
        code: Callable[[Address], str],
        reads: Sequence[Value],
        writes: Value,
        about: str,
    ) -> Value:
        """Add a step of plain code, and return what it writes."""
        self.program.steps.append(TeamStep(code, tuple(reads), writes, about))
        return writes

    def reshaped(self, value: Value, shape: list[int]) -> Value:
        """The value with another shape; of a copy where its rows are not side by side."""
        try:
            return Value(value.buffer, value.view.view(shape))
        except RuntimeError:
            copy = self.contiguous(value)
            return Value(copy.buffer, copy.view.view(shape))

    def mapped(self, node: fx.Node, expression: str, *operands: Value) -> Value:
        """The value of a node by an expression of its operands a, b, c, ..., broadcast."""
        result = first_result(node)
        y = self.program.new(result.shape, result.dtype)
        return self.map(y, operands, expression, module_name(node))

    def map(self, y: Value, operands: Sequence[Value], expression: str, about: str) -> Value:
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

        return self.step(code, operands, y, about)


def first_result(node: fx.Node) -> torch.Tensor:
    """What a node computes, without values; the first of several results."""
    found = node.meta["val"]
    return found[0] if isinstance(found, (list, tuple)) else found  # type: ignore[no-any-return]


def type_of(value: Value) -> str:
    """What a value holds, in words."""
    return "token ids" if value.view.dtype == torch.int64 else str(value.view.dtype)


def check_operands(values: Iterable[Value]) -> None:
    """UserError for token ids, which only embeddings and views read."""
    for value in values:
        if value.view.dtype not in (torch.float32, torch.bool):
            raise UserError(
                f"the network library computes nothing of {type_of(value)}\n  {INSTEAD}"
            )


def check_whole(value: Value) -> None:
    """UserError for a value without elements."""
    if value.view.numel() == 0:
        raise UserError(
            "the network library has no code for a tensor without elements\n"
            f"  got: the shape {value.shape}"
        )


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
