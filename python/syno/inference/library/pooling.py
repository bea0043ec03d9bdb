"""Pooling of signals, maps and volumes, as passes over maps of two dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.library.program import Address, number
from syno.inference.library.registry import code as _code
from syno.inference.trace import each_dimension, module_name

if TYPE_CHECKING:
    from syno.inference.library.lower import _Lowering

_aten = torch.ops.aten
_MAXIMA: dict[object, int] = {
    _aten.max_pool1d.default: 1,
    _aten.max_pool2d.default: 2,
    _aten.max_pool3d.default: 3,
}
_AVERAGES: dict[object, int] = {
    _aten.avg_pool1d.default: 1,
    _aten.avg_pool2d.default: 2,
    _aten.avg_pool3d.default: 3,
}
_ADAPTIVE: dict[object, int] = {
    _aten.adaptive_avg_pool1d.default: 1,
    _aten.adaptive_avg_pool2d.default: 2,
    _aten.adaptive_avg_pool3d.default: 3,
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
    """Windows over the rows and columns of so many maps; last: whether none comes after it."""

    maps: int
    height: _Axis
    width: _Axis
    last: bool = True

    @property
    def windows(self) -> str:
        """The type of the runtime for them."""
        pairs = [
            (axis.size, axis.kernel, axis.stride, axis.padding, axis.out)
            for axis in (self.height, self.width)
        ]
        sizes = [self.maps, *(value for pair in zip(*pairs, strict=True) for value in pair)]
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
    self: _Lowering,
    node: fx.Node,
    axes: Sequence[_Axis],
    written: Callable[[_Pass, str, str], str],
) -> None:
    """Adds the passes. written: the code of one, with the names of its input and its output."""
    x = self._contiguous(self._get(node.args[0]))
    for each in _passes(math.prod(x.shape[: -len(axes)]), axes):
        shape = [each.maps, each.height.out, each.width.out]
        y = self.program.new(node.meta["val"].shape if each.last else shape)

        def step(at: Address, each: _Pass = each, x: Any = x, y: Any = y) -> str:
            return written(each, at(x), at(y))

        x = self._step(step, [x], y, module_name(node))
    self.values[node] = x


def _axes(node: fx.Node, rank: int) -> list[_Axis]:
    """The windows of a pooling by its first arguments: kernel, stride and padding."""
    source = node.args[0]
    assert isinstance(source, fx.Node)
    kernel, stride, padding = [*node.args[1:], None, None, None][:3]
    sizes = each_dimension(kernel, rank)
    steps = each_dimension(stride, rank) if stride else sizes
    around = each_dimension(padding or 0, rank)
    inside, outside = (list(n.meta["val"].shape)[-rank:] for n in (source, node))
    return [_Axis(*each) for each in zip(inside, outside, sizes, steps, around, strict=True)]


@_code(*_MAXIMA)
def _max_pool(self: _Lowering, node: fx.Node) -> None:
    rank = _MAXIMA[node.target]
    if set(each_dimension(node.args[4] if len(node.args) > 4 else 1, rank)) != {1}:
        raise UserError("the network library has no code for max pooling with dilation")
    _pooled(
        self,
        node,
        _axes(node, rank),
        lambda each, x, y: f"max_pool<{each.windows}>({x}, {y}, team);",
    )


@_code(*_AVERAGES)
def _average_pool(self: _Lowering, node: fx.Node) -> None:
    _, padded, divisor = [*node.args[4:], *[None] * 3][:3]

    def divisor_of(each: _Pass) -> str:
        """By what a window at h, w is divided: its elements, or once the given number."""
        if divisor is not None:
            return number(float(divisor) if each.last else 1.0)  # type: ignore[arg-type]
        counts = []
        for name, axis in zip("hw", (each.height, each.width), strict=True):
            around = axis.padding if padded is None or padded else 0
            sizes = axis.stride, axis.padding, axis.kernel, -around, axis.size + around
            counts.append(f"covered({name}, {', '.join(map(str, sizes))})")
        return " * ".join(counts)

    def written(each: _Pass, x: str, y: str) -> str:
        return (
            f"average_pool<{each.windows}>({x}, {y}, team, []([[maybe_unused]] long h, "
            f"[[maybe_unused]] long w) {{ return {divisor_of(each)}; }});"
        )

    _pooled(self, node, _axes(node, _AVERAGES[node.target]), written)


@_code(*_ADAPTIVE)
def _adaptive(self: _Lowering, node: fx.Node) -> None:
    rank = _ADAPTIVE[node.target]
    source = node.args[0]
    assert isinstance(source, fx.Node)
    inside, outside = (list(n.meta["val"].shape)[-rank:] for n in (source, node))

    def written(each: _Pass, x: str, y: str) -> str:
        sizes = [each.maps]
        sizes += [each.height.size, each.width.size, each.height.out, each.width.out]
        return f"adaptive_average_pool({x}, {y}, {', '.join(map(str, sizes))}, team);"

    axes = [_Axis(size, out) for size, out in zip(inside, outside, strict=True)]
    _pooled(self, node, axes, written)
