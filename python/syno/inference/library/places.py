"""Elements that are chosen by their places, and windows side by side as columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.library.builder import Builder
from syno.inference.library.program import Address, Value
from syno.inference.library.registry import code as _code
from syno.inference.node_arguments import NodeArguments
from syno.inference.trace import each_dimension, module_name

_aten = torch.ops.aten
# Places are kept as float32, which has all whole numbers below it.
_MOST = 2**24


@_code(_aten.index.Tensor)
def _index(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x, indices = build.get(given["self"]), given["indices"]
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if dims != list(range(dims[0], dims[-1] + 1)):
        raise UserError("the network library has no code for indices of dimensions that lie apart")
    held = [_held(build, node, indices[dim]) for dim in dims]
    sizes = x.shape[dims[0] : dims[-1] + 1]
    places = torch.zeros(1, dtype=torch.int64)
    for index, size in zip(held, sizes, strict=True):
        places = places * size + index % size
    return _chosen(build, node, x, dims, places)


@_code(_aten.index_select.default)
def _index_select(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x = build.get(given["self"])
    places = _held(build, node, given["index"])
    return _chosen(build, node, x, [given["dim"] % x.view.dim()], places)


@_code(_aten.flip.default)
def _flip(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x = build.get(given["self"])
    for dim in given["dims"]:
        x = _chosen(build, node, x, [dim % x.view.dim()], torch.arange(x.shape[dim]).flip(0))
    return x


def _held(build: Builder, node: fx.Node, index: fx.Node) -> torch.Tensor:
    """Places that the network does not compute."""
    held = build.held.get(index.name)
    if held is None or held.dtype == torch.bool:
        raise UserError(
            f"the network library has no code for places in '{node.target}' that are no whole "
            "numbers known beforehand"
        )
    return held


def _chosen(
    build: Builder, node: fx.Node, x: Value, dims: Sequence[int], places: torch.Tensor
) -> Value:
    """The elements at these places of some neighbouring dimensions, which count as one."""
    x = build.contiguous(x)
    before, chosen, after = (
        x.shape[: dims[0]],
        x.shape[dims[0] : dims[-1] + 1],
        x.shape[dims[-1] + 1 :],
    )
    size, length, count = math.prod(chosen), math.prod(after), places.numel()
    if size > _MOST:
        raise UserError(f"the network library has no code for places in {size} elements")
    table = build.program.constant(places.to(torch.float32).flatten())
    y = build.program.new([*before, *places.shape, *after])
    rows = math.prod(before) * count

    def step(at: Address) -> str:
        from_ = f"{at(x)} + (i / {count} * {size} + long({at(table)}[i % {count}])) * {length}"
        return (
            f"for (long i = team.begin({rows}); i < team.end({rows}); ++i)\n"
            f"  std::memcpy({at(y)} + i * {length}, {from_}, {length} * sizeof(float));"
        )

    return build.step(step, [x, table], y, module_name(node))


@_code(_aten.im2col.default)
def _windows(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    """The elements of each window as a column."""
    x = build.get(given["self"])
    around = each_dimension(given["padding"], 2)
    if any(around):
        padded = [*x.shape[:-2], *(n + 2 * p for n, p in zip(x.shape[-2:], around, strict=True))]
        wide = build.program.new(padded)
        build.map(wide, [], "Vector{}", f"{module_name(node)} (zeros)")
        middle = _middle(wide.view, around)
        build.map(Value(wide.buffer, middle), [x], "a", f"{module_name(node)} (padded)")
        x = wide
    windows = _windows_of(x.view, given)
    y = build.program.new(windows.shape)
    build.map(y, [Value(x.buffer, windows)], "a", module_name(node))
    return Value(y.buffer, y.view.view(node.meta["val"].shape))


@_code(_aten.col2im.default)
def _from_windows(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    """The sum of windows that may lie over each other."""
    given.without_effect("output_size")  # the shape of the result says it
    shape, around = list(node.meta["val"].shape), each_dimension(given["padding"], 2)
    wide = build.program.new(
        [*shape[:-2], *(n + 2 * p for n, p in zip(shape[-2:], around, strict=True))]
    )
    build.map(wide, [], "Vector{}", f"{module_name(node)} (zeros)")
    windows = _windows_of(wide.view, given)
    x = build.contiguous(build.get(given["self"]))
    columns = x.view.view(windows.shape)
    rank = windows.dim()
    for row in range(windows.shape[rank - 4]):
        for column in range(windows.shape[rank - 3]):
            to, from_ = (
                each.select(rank - 4, row).select(rank - 4, column) for each in (windows, columns)
            )
            place = Value(wide.buffer, to)
            build.map(place, [place, Value(x.buffer, from_)], "a + b", module_name(node))
    return Value(wide.buffer, _middle(wide.view, around))


def _middle(view: torch.Tensor, around: Sequence[int]) -> torch.Tensor:
    for dim, size in zip((-2, -1), around, strict=True):
        view = view.narrow(dim, size, view.shape[dim] - 2 * size)
    return view


def _windows_of(view: torch.Tensor, given: NodeArguments) -> torch.Tensor:
    """Windows of a map [..., H, W] as [..., kernel rows, kernel columns, rows, columns]."""
    kernel, dilation, stride = (
        each_dimension(given[name], 2) for name in ("kernel_size", "dilation", "stride")
    )
    counts = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, d, s in zip(view.shape[-2:], kernel, dilation, stride, strict=True)
    ]
    *outer, down, right = view.stride()
    strides = [down * dilation[0], right * dilation[1], down * stride[0], right * stride[1]]
    return view.as_strided([*view.shape[:-2], *kernel, *counts], [*outer, *strides])
