"""Pooling of signals, maps and volumes, as passes over maps of two dimensions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import fx

from syno.inference.codes import Codes, inside
from syno.inference.library.builder import Builder, first_result, rounding_of
from syno.inference.library.program import Address, Value, number
from syno.inference.library.reductions import mean_of_pixels
from syno.inference.library.registry import code as _code
from syno.inference.node_arguments import NodeArguments
from syno.inference.trace import each_dimension, module_name

_aten = torch.ops.aten
MAXIMA: dict[object, int] = {
    _aten.max_pool1d.default: 1,
    _aten.max_pool2d.default: 2,
    _aten.max_pool3d.default: 3,
    _aten.max_pool2d_with_indices.default: 2,
    _aten.max_pool3d_with_indices.default: 3,
}
_AVERAGES: dict[object, int] = {
    _aten.avg_pool1d.default: 1,
    _aten.avg_pool2d.default: 2,
    _aten.avg_pool3d.default: 3,
}
_MEANS = "adaptive_average_pool"
_ADAPTIVE: dict[object, tuple[int, str]] = {
    _aten.adaptive_avg_pool1d.default: (1, _MEANS),
    _aten.adaptive_avg_pool2d.default: (2, _MEANS),
    _aten.adaptive_avg_pool3d.default: (3, _MEANS),
    _aten.adaptive_max_pool1d.default: (1, "adaptive_max_pool"),
    _aten.adaptive_max_pool2d.default: (2, "adaptive_max_pool"),
    _aten.adaptive_max_pool3d.default: (3, "adaptive_max_pool"),
}


@dataclass(frozen=True)
class _Axis:
    """Windows along one dimension of `size` elements, whose results are `out`."""

    size: int
    out: int
    kernel: int = 1
    stride: int = 1
    padding: int = 0


@dataclass(frozen=True)
class _Pass:
    """Windows over the rows and columns of so many maps; last: whether none comes after it.

    distances: of rows and of maps in memory, where they do not lie one after the other.
    """

    maps: int
    height: _Axis
    width: _Axis
    last: bool = True
    distances: tuple[int, ...] = ()

    @property
    def windows(self) -> str:
        """The type of the runtime for them."""
        pairs = [
            (axis.size, axis.kernel, axis.stride, axis.padding, axis.out)
            for axis in (self.height, self.width)
        ]
        sizes = [self.maps, *(value for pair in zip(*pairs, strict=True) for value in pair)]
        sizes += self.distances
        return f"Windows<{', '.join(map(str, sizes))}>"


def _passes(maps: int, axes: Sequence[_Axis]) -> list[_Pass]:
    """A signal is a map of one row; a volume is pooled in its planes, and then across them."""
    if len(axes) == 1:
        return [_Pass(maps, _Axis(1, 1), axes[0])]
    if len(axes) == 2:
        return [_Pass(maps, axes[0], axes[1])]
    depth, height, width = axes
    plane = height.out * width.out
    return [
        _Pass(maps * depth.size, height, width, last=False),
        _Pass(maps, depth, _Axis(plane, plane)),
    ]


def _pooled(
    build: Builder,
    node: fx.Node,
    given: NodeArguments,
    axes: Sequence[_Axis],
    written: Callable[[_Pass, str, str], str],
    *,
    in_order: bool = False,
) -> Value:
    """Adds the passes.

    written: the code of one, with the names of its input and its output; in_order: whether it reads
    maps that lie one after the other only, instead of what `_Pass.windows` says.
    """
    x = build.get(given["self"])
    passes = _passes(math.prod(x.shape[: -len(axes)]), axes)
    distances = _distances(x) if len(axes) == 2 and not in_order else None
    if distances is None or x.contiguous:
        x = build.contiguous(x)
    else:
        passes = [replace(passes[0], distances=distances)]
    for each in passes:
        shape = [each.maps, each.height.out, each.width.out]
        y = build.program.new(first_result(node).shape if each.last else shape)

        def step(at: Address, each: _Pass = each, x: Value = x, y: Value = y) -> str:
            return written(each, at(x), at(y))

        x = build.step(step, [x], y, module_name(node))
    return x


def _distances(x: Value) -> tuple[int, int] | None:
    """Of the rows and maps of a part of a tensor; None where they have no single one."""
    *outer, (_, row), (width, column) = zip(x.shape, x.view.stride(), strict=True)
    if width > 1 and column != 1:
        return None
    outer = [(size, stride) for size, stride in outer if size > 1]
    pairs = itertools.pairwise(outer)
    if any(stride != size * inner for (_, stride), (size, inner) in pairs):
        return None
    return row, outer[-1][1] if outer else 0


def _axes(node: fx.Node, given: NodeArguments, rank: int) -> list[_Axis]:
    """The windows of a pooling."""
    given.without_effect("ceil_mode")  # the sizes of the result say it
    sizes = each_dimension(given["kernel_size"], rank)
    steps = each_dimension(given["stride"], rank) if given["stride"] else sizes
    around = each_dimension(given["padding"], rank)
    pairs = _sizes(node, given, rank)
    return [_Axis(*each) for each in zip(*pairs, sizes, steps, around, strict=True)]


def _sizes(node: fx.Node, given: NodeArguments, rank: int) -> tuple[list[int], list[int]]:
    """Those of the maps, and of the result."""
    return list(given["self"].meta["val"].shape[-rank:]), list(first_result(node).shape[-rank:])


@_code(*MAXIMA)
def _max_pool(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    axes = _axes(node, given, MAXIMA[node.target])
    x = build.stored(given["self"])
    if x.codes is not None and _is_map(x, axes):
        return _max_pool_of_codes(build, node, x, _passes(x.shape[-3], axes)[0])
    return _pooled(
        build, node, given, axes, lambda each, x, y: f"max_pool<{each.windows}>({x}, {y}, team);"
    )


def _is_map(x: Value, axes: Sequence[_Axis]) -> bool:
    """Whether windows are those of a map of one image."""
    return len(axes) == 2 and x.shape[:-3] in ([], [1])


def _max_pool_of_codes(build: Builder, node: fx.Node, x: Value, windows: _Pass) -> Value:
    """The greatest codes of windows, of maps with channels inside."""
    rank, codes = x.view.dim(), x.codes
    assert codes is not None
    x = build.laid(x, codes, inside(rank, rank - 3), module_name(node))
    order = inside(rank, rank - 3)
    y = build.program.new(first_result(node).shape, codes=codes, order=order)

    def step(at: Address) -> str:
        from_, to = x.source(at(x)), y.target(at(y))
        return f"max_pool_codes({windows.windows}{{}}, {from_}, {to}, team);"

    return build.step(step, [x], y, module_name(node))


@_code(*_AVERAGES)
def _average_pool(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    padded, divisor = given["count_include_pad"], given.get("divisor_override", None)

    def divisor_of(each: _Pass) -> str:
        """By what a window at h, w is divided: its elements, or once the given number."""
        if divisor is not None:
            return number(float(divisor) if each.last else 1.0)
        counts = []
        for name, axis in zip("hw", (each.height, each.width), strict=True):
            around = axis.padding if padded else 0
            sizes = axis.stride, axis.padding, axis.kernel, -around, axis.size + around
            counts.append(f"covered({name}, {', '.join(map(str, sizes))})")
        return " * ".join(counts)

    def written(each: _Pass, x: str, y: str) -> str:
        return f"average_pool<{each.windows}>({x}, {y}, team, {_divisor(divisor_of(each))});"

    axes, rounding = _axes(node, given, _AVERAGES[node.target]), rounding_of(node)
    x = build.stored(given["self"])
    if x.codes is not None and rounding is not None and _is_map(x, axes):
        windows = _passes(x.shape[-3], axes)[0]
        y = _average_pool_of_codes(build, node, x, windows, rounding[1], divisor_of(windows))
        build.values[rounding[0]] = y
        return y
    return _pooled(build, node, given, axes, written)


def _average_pool_of_codes(
    build: Builder, node: fx.Node, x: Value, windows: _Pass, codes: Codes, divisor: str
) -> Value:
    """The codes of the means of windows, of maps with channels inside."""
    rank = x.view.dim()
    order = inside(rank, rank - 3)
    x = build.laid(x, x.codes, order, module_name(node))
    y = build.program.new(first_result(node).shape, codes=codes, order=order)

    def step(at: Address) -> str:
        from_, to = x.source(at(x)), y.target(at(y))
        return (
            f"average_pool_codes({windows.windows}{{}}, {from_}, {to}, team, {_divisor(divisor)});"
        )

    return build.step(step, [x], y, module_name(node))


def _divisor(expression: str) -> str:
    """The function of a window at h, w that says what its sum is divided by."""
    return f"[]([[maybe_unused]] long h, [[maybe_unused]] long w) {{ return {expression}; }}"


@_code(*_ADAPTIVE)
def _adaptive(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    rank, function = _ADAPTIVE[node.target]
    given.without_effect("output_size")  # the sizes of the result say it
    sizes_of = _sizes(node, given, rank)
    x = build.stored(given["self"])
    if rank == x.view.dim() - 2 and function == _MEANS and {*sizes_of[1]} == {1}:
        found = mean_of_pixels(build, node, x, range(2, rank + 2))
        if found is not None:
            return found

    def written(each: _Pass, x: str, y: str) -> str:
        sizes = [each.maps]
        sizes += [each.height.size, each.width.size, each.height.out, each.width.out]
        return f"{function}({x}, {y}, {', '.join(map(str, sizes))}, team);"

    axes = [_Axis(size, out) for size, out in zip(*sizes_of, strict=True)]
    return _pooled(build, node, given, axes, written, in_order=True)
