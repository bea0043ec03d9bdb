"""Sums, means, maxima and other values of several elements, and softmax."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.codes import inside
from syno.inference.library.builder import Builder, first_result
from syno.inference.library.program import Address, Value, number
from syno.inference.library.registry import code as _code
from syno.inference.library.registry import overloads
from syno.inference.node_arguments import NodeArguments
from syno.inference.trace import module_name

_aten = torch.ops.aten
# The functions of the runtime, of a row and its length.
_MEAN = "mean_of(row, n)"
_SIMPLE: dict[object, str] = {
    **dict.fromkeys(overloads("mean"), _MEAN),
    **dict.fromkeys(overloads("sum", "default", "dim_IntList"), "sum_of(row, n)"),
    **dict.fromkeys(overloads("amax"), "greatest_of(row, n)"),
    **dict.fromkeys(overloads("amin"), "least_of(row, n)"),
    **dict.fromkeys(overloads("max", "default", "dim"), "greatest_of(row, n)"),
    **dict.fromkeys(overloads("min", "default", "dim"), "least_of(row, n)"),
}
# The shape and the type of the result say these.
_OF_RESULT = ("keepdim", "dtype")
_NORMS = {
    1.0: "sum_over(row, n, [](Vector v) { return magnitude(v); })",
    2.0: "__builtin_sqrtf(sum_over(row, n, [](Vector v) { return v * v; }))",
    math.inf: "greatest_size_of(row, n)",
}


def mean_of_pixels(build: Builder, node: fx.Node, x: Value, dims: Sequence[int]) -> Value | None:
    """The mean over all but the batch and the channels, which lie inside; else None."""
    rank = x.view.dim()
    if rank < 3 or x.shape[0] != 1 or list(dims) != list(range(2, rank)):
        return None
    if x.contiguous or not x.lies(inside(rank, 1)):
        return None
    y, channels, pixels = build.program.new(first_result(node).shape), x.shape[1], x.view.numel()

    def step(at: Address) -> str:
        return (
            f"mean_of_pixels<{channels}>({x.source(at(x))}, {at(y)}, {pixels // channels}, team);"
        )

    return build.step(step, [x], y, module_name(node))


@_code(*overloads("mean", "dim"))
def _mean(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x = build.stored(given["self"])
    dims = _dimensions(given["dim"], x.view.dim())
    found = mean_of_pixels(build, node, x, dims)
    if found is None:
        return _reduced(build, node, given, _MEAN)
    given.without_effect(*_OF_RESULT)
    return found


@_code(*_SIMPLE)
def _simple(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    return _reduced(build, node, given, _SIMPLE[node.target])


@_code(*overloads("var", "default", "dim", "correction"))
def _variance(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    return _reduced(build, node, given, f"variance_of(row, n, {_correction(given)})")


@_code(*overloads("std", "default", "dim", "correction"))
def _deviation(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    function = f"__builtin_sqrtf(variance_of(row, n, {_correction(given)}))"
    return _reduced(build, node, given, function)


def _correction(given: NodeArguments) -> str:
    """By how much the divisor of a variance is less than the number of elements."""
    if "unbiased" in given:
        return number(1.0 if given["unbiased"] else 0.0)
    correction = given["correction"]
    return number(1.0 if correction is None else correction)


@_code(_aten.linalg_vector_norm.default)
def _norm(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    order = float(given["ord"])
    if order not in _NORMS:
        raise UserError(f"the network library has no code for a norm of the order {order}")
    return _reduced(build, node, given, _NORMS[order])


def _reduced(build: Builder, node: fx.Node, given: NodeArguments, function: str) -> Value:
    """The value of a function of each row, in C++: that of `row` and its length `n`."""
    given.without_effect(*_OF_RESULT)
    x = build.get(given["self"])
    dims = _dimensions(given.get("dim", None), x.view.dim())
    rest = [d for d in range(x.view.dim()) if d not in dims]
    moved = build.contiguous(Value(x.buffer, x.view.permute([*rest, *dims])))
    length = math.prod(x.shape[d] for d in dims)
    y = build.program.new(first_result(node).shape)
    rows = y.view.numel()
    row = f"[](const float* row, long n) {{ return {function}; }}"
    return build.step(
        lambda at: f"reduce_rows({at(moved)}, {at(y)}, {rows}, {length}, team, {row});",
        [moved],
        y,
        module_name(node),
    )


def _dimensions(given: int | Sequence[int] | None, rank: int) -> list[int]:
    """The dimensions that an argument names; all of them where it names none."""
    if rank == 0:
        return []
    named = [given] if isinstance(given, int) else list(given or range(rank))
    return sorted(d % rank for d in named)


@_code(*overloads("softmax", "int"))
def _softmax(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    return _along_rows(build, node, given, "softmax")


@_code(*overloads("log_softmax", "int"))
def _log_softmax(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    return _along_rows(build, node, given, "log_softmax")


def _along_rows(build: Builder, node: fx.Node, given: NodeArguments, function: str) -> Value:
    """A function of the runtime that replaces each row, along any dimension."""
    given.without_effect("dtype")  # the type of the result says it
    x = build.get(given["self"])
    rank = x.view.dim()
    if rank == 0:
        raise UserError(f"the network library has no code for '{node.target}' of one element")
    dim = given["dim"] % rank
    order = [*(d for d in range(rank) if d != dim), dim]
    moved = build.contiguous(Value(x.buffer, x.view.permute(order)))
    y = build.program.new(moved.shape)
    rows, length = y.view.numel() // x.shape[dim], x.shape[dim]
    build.step(
        lambda at: f"{function}({at(moved)}, {at(y)}, {rows}, {length}, team);",
        [moved],
        y,
        module_name(node),
    )
    back = [order.index(d) for d in range(rank)]
    return Value(y.buffer, y.view.permute(back))
