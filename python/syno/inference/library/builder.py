"""What the code of an operator of the network library is built with: values, steps, maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.codes import ROUND, Codes, codes_of
from syno.inference.library.program import Address, KernelCall, Program, TeamStep, Value
from syno.inference.passes.clean import only_user
from syno.inference.trace import module_name

INSTEAD = "what to do: use syno.compile, where it stays PyTorch, or the format aoti"
# Elements of a row that a thread computes at once, so that long rows can be shared.
_RUN = 1024
_NAMES = "abcdefgh"  # of operands
# From how many rows and columns on matrices are transposed in squares of as many elements as a
# vector has.
_LEAST_SQUARE = 8


@dataclass(frozen=True)
class _Map:
    """A function, in C++, of each element of the operands of a node."""

    node: fx.Node
    function: str
    operands: tuple[Value, ...]
    about: str

    def after(self, former: _Map, value: Value, shape: list[int]) -> _Map | None:
        """This with another one in the place of its value, where it gives that to this alone."""
        others = [each for each in self.operands if each.buffer is not value.buffer]
        same = [each for each in self.operands if each.buffer is value.buffer]
        count = len(former.operands) + len(others)
        if only_user(former.node) is not self.node or not same or count > len(_NAMES):
            return None
        if any(not each.is_whole or each.shape != shape for each in same):
            return None
        inner = f"{former.function}({', '.join(_NAMES[: len(former.operands)])})"
        names = iter(_NAMES[len(former.operands) :])
        given = [inner if each.buffer is value.buffer else next(names) for each in self.operands]
        function = _function(f"{self.function}({', '.join(given)})", count)
        about = self.about if self.about == former.about else f"{former.about}, {self.about}"
        return _Map(self.node, function, (*former.operands, *others), about)


class Builder:
    """The program of a graph, as far as it is written.

    held: what the graph holds, by name. values: of the nodes so far; a list where a node gives
    several tensors. An operator that computes its user, too, sets the value of both.
    """

    def __init__(self, held: dict[str, torch.Tensor]) -> None:
        self.held = held
        self.program = Program()
        self.values: dict[fx.Node, Value | list[Value | None]] = {}
        self._former: tuple[_Map, TeamStep | KernelCall] | None = None
        self._numbers: dict[fx.Node, Value] = {}

    def get(self, node: object) -> Value:
        """The value of a node that gives one tensor, as numbers."""
        found = self.stored(node)
        if found.codes is None:
            return found
        assert isinstance(node, fx.Node)
        if node not in self._numbers:
            made = self.program.new(found.shape)
            self._numbers[node] = self.map(made, [found], "a", f"{module_name(node)} (numbers)")
        return self._numbers[node]

    def stored(self, node: object) -> Value:
        """The value of a node that gives one tensor, as it is stored: also as codes."""
        found = self.given(node)
        if not isinstance(found, Value):
            raise UserError(
                f"the network library has no code for '{node}', which is several tensors"
            )
        return found

    def given(self, node: object) -> Value | list[Value | None]:
        """What a node gives; None for a tensor that there is no code for."""
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
        copy = self.program.new(value.shape, value.view.dtype, codes=value.codes)
        self.map(copy, [value], "a", "copy in order")
        return copy

    def alike(self, nodes: Sequence[object]) -> list[Value]:
        """The values of nodes as they are stored, where they have the same codes; else numbers."""
        found = [self.stored(node) for node in nodes]
        if len({value.codes for value in found}) > 1:
            return [self.get(node) for node in nodes]
        return found

    def order_of(self, node: fx.Node, value: Value) -> Sequence[int] | None:
        """The order in memory of the result of a node that moves the elements of a value.

        Numbers lie row by row, and codes as they did, where there are as many dimensions.
        """
        rank = first_result(node).dim()
        if value.codes is None or value.view.dim() != rank:
            return None
        strides = value.view.stride()
        return sorted(range(rank), key=lambda d: (value.shape[d] > 1, -strides[d]))

    def laid(self, value: Value, codes: Codes | None, order: Sequence[int], about: str) -> Value:
        """The value, or a copy, as these codes or as numbers, in this order in memory."""
        if value.codes == codes and value.lies(order):
            return value
        made = self.program.new(value.shape, codes=codes, order=order)
        return self.map(made, [value], "a", f"{about} ({'numbers' if codes is None else 'codes'})")

    def rounded(self, node: fx.Node, value: Value, codes: Codes, order: Sequence[int]) -> Value:
        """The value of a node that rounds another one to codes.

        A map right before it, which nothing else reads, stores codes itself.
        """
        if value.codes == codes:
            return value
        operands: tuple[Value, ...] = (value,)
        function, about = _function("a", 1), f"{module_name(node)} (codes)"
        steps = self.program.steps
        if self._former is not None and steps[-1] is self._former[1]:
            former = self._former[0]
            if only_user(former.node) is node and steps[-1].writes.buffer is value.buffer:
                steps.pop()
                operands, function, about = former.operands, former.function, former.about
        return self._map(
            self.program.new(value.shape, codes=codes, order=order), operands, function, about
        )

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
        """The value of a node by an expression of its operands a, b, c, ..., broadcast.

        A map right before it, which nothing else reads, becomes a part of it.
        """
        result = first_result(node)
        made = _Map(node, _function(expression, len(operands)), operands, module_name(node))
        steps = self.program.steps
        if self._former is not None and steps[-1] is self._former[1]:
            together = made.after(self._former[0], steps[-1].writes, list(result.shape))
            if together is not None:
                steps.pop()
                made = together
        y = self.program.new(result.shape, result.dtype)
        self._map(y, made.operands, made.function, made.about)
        if y.view.numel():
            self._former = made, steps[-1]
        return y

    def map(self, y: Value, operands: Sequence[Value], expression: str, about: str) -> Value:
        """y = expression of a, b, c, ...: the operands, which are broadcast."""
        return self._map(y, operands, _function(expression, len(operands)), about)

    def _map(self, y: Value, operands: Sequence[Value], function: str, about: str) -> Value:
        if y.view.numel() == 0:
            return y
        views = [y.view, *(value.view.expand(y.view.shape) for value in operands)]
        if y.shape and y.view.stride(-1) != 1:  # such as that of a map with channels inside
            along = y.view.stride()
            order = sorted(range(len(along)), key=lambda d: -along[d])
            views = [view.permute(order) for view in views]
        sizes, strides = _collapsed(list(views[0].shape), [list(v.stride()) for v in views])
        if sizes[-1] > 1 and strides[0][-1] != 1:  # elements of the result that lie apart
            sizes, strides = [*sizes, 1], [[*of, 0] for of in strides]
        across = _across(sizes, strides)

        def code(at: Address) -> str:
            placed = [(value, at(value)) for value in (y, *operands)]
            if across is None:
                return _map_of_rows(sizes, strides, placed, function)
            return _map_of_squares(sizes, strides, across, placed, function)

        return self.step(code, operands, y, about)


def _function(expression: str, operands: int) -> str:
    """The C++ of a function of so many vectors."""
    parameters = ", ".join(f"Vector {name}" for name in _NAMES[:operands])
    return f"[]({parameters}) {{ return {expression}; }}"


def first_result(node: fx.Node) -> torch.Tensor:
    """What a node computes, without values; the first of several results."""
    found = node.meta["val"]
    return found[0] if isinstance(found, (list, tuple)) else found  # type: ignore[no-any-return]


def rounding_of(node: fx.Node) -> tuple[fx.Node, Codes] | None:
    """The node that rounds what a node gives to codes, if nothing else reads that."""
    user = only_user(node)
    if user is None or user.target is not ROUND:
        return None
    return user, codes_of(user)[1]


def type_of(value: Value) -> str:
    """What a value holds, in words."""
    return "token ids" if value.view.dtype == torch.int64 else str(value.view.dtype)


def check_operands(values: Iterable[Value]) -> None:
    """UserError for token ids, which only embeddings and views read."""
    for value in values:
        if value.codes is None and value.view.dtype not in (torch.float32, torch.bool):
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


def _across(sizes: list[int], strides: list[list[int]]) -> int | None:
    """The dimension along which all operands lie side by side that do not along the last."""
    apart = [of for of in strides[1:] if of[-1] not in (0, 1)]
    if not apart or sizes[-1] < _LEAST_SQUARE:
        return None
    for d, size in enumerate(sizes[:-1]):
        if size >= _LEAST_SQUARE and all(of[d] == 1 for of in apart):
            return d
    return None


def _place(at: str, sizes: list[int], strides: list[int], dims: list[int], *more: str) -> str:
    """The address of an element, whose number is i among those of the dimensions `dims`."""
    terms, outer = [at], math.prod(sizes[d] for d in dims)
    below = outer
    for d in dims:
        below //= sizes[d]
        if strides[d] and sizes[d] > 1:
            index = "i" if below == 1 else f"i / {below}"
            index += f" % {sizes[d]}" if below * sizes[d] != outer else ""
            terms.append(f"({index}) * {strides[d]}")
    return " + ".join([*terms, *more])


# An operand, and the address of its first element.
_Placed = tuple[Value, str]


def _type(value: Value) -> str:
    """The further argument of a template that reads it."""
    return "" if value.codes is None else ", Codes"


def _map_of_rows(
    sizes: list[int], strides: list[list[int]], placed: list[_Placed], function: str
) -> str:
    """Row by row of the last dimension; long rows in parts."""
    dims, inner = list(range(len(sizes) - 1)), sizes[-1]
    work, blocks = math.prod(sizes[:-1]), -(-inner // _RUN)
    work *= blocks
    count = f"least({inner} - j, {_RUN})" if blocks > 1 else str(inner)
    y, *places = (
        _place(at, sizes, of, dims, *([f"j * {of[-1]}"] if blocks > 1 and of[-1] else []))
        for (_, at), of in zip(placed, strides, strict=True)
    )
    from_ = [
        f"From<{of[-1] if inner > 1 else 0}{_type(each)}>{{{each.source(place)}}}"
        for (each, _), place, of in zip(placed[1:], places, strides[1:], strict=True)
    ]
    index = f"u / {blocks}, j = u % {blocks} * {_RUN}" if blocks > 1 else "u"
    codes = [value.codes for value, _ in placed]
    row = f"map_row({', '.join([placed[0][0].target(y), count, function, *from_])})"
    if function == _function("a", 1) and codes[0] == codes[1] is not None and strides[1][-1] == 1:
        row = f"std::memcpy({y}, {places[0]}, {count})"
    return (
        f"for (long u = team.begin({work}); u < team.end({work}); ++u) {{\n"
        f"  [[maybe_unused]] const long i = {index};\n"
        f"  {row};\n}}"
    )


def _map_of_squares(
    sizes: list[int],
    strides: list[list[int]],
    across: int,
    placed: list[_Placed],
    function: str,
) -> str:
    """Square by square of the last dimension and the one that is transposed."""
    dims = [d for d in range(len(sizes) - 1) if d != across]
    rows, columns = (f"ceil_divide({sizes[d]}, kLanes)" for d in (across, -1))
    y, *places = (
        _place(at, sizes, of, dims, f"r * {of[across]}", f"c * {of[-1]}")
        for (_, at), of in zip(placed, strides, strict=True)
    )
    height, width = f"least({sizes[across]} - r, kLanes)", f"least({sizes[-1]} - c, kLanes)"
    squares = [
        f"Across<{of[across]}, {of[-1]}{_type(each)}>{{{each.source(place)}}}"
        if of[-1] in (0, 1)
        else f"Transposed<{of[-1]}{_type(each)}>({each.source(place)}, {height}, {width})"
        for (each, _), place, of in zip(placed[1:], places, strides[1:], strict=True)
    ]
    arguments = [placed[0][0].target(y), str(strides[0][across]), height, width, function, *squares]
    return (
        f"constexpr long rows = {rows}, columns = {columns};\n"
        f"constexpr long work = {math.prod(sizes[d] for d in dims)} * rows * columns;\n"
        f"for (long u = team.begin(work); u < team.end(work); ++u) {{\n"
        f"  [[maybe_unused]] const long i = u / columns / rows;\n"
        f"  const long r = u / columns % rows * kLanes, c = u % columns * kLanes;\n"
        f"  map_square({', '.join(arguments)});\n}}"
    )
