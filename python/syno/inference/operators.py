"""Convolutions and linear layers as operators of the language."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx

from syno.inference.layer import CONVOLUTION, LINEAR, Computation
from syno.inference.node_arguments import NodeArguments
from syno.inference.trace import each_dimension, shape_of
from syno.operators.operator import Operator

_aten = torch.ops.aten
CONVOLUTIONS = {
    _aten.conv1d.default: 1,
    _aten.conv1d.padding: 1,
    _aten.conv2d.default: 2,
    _aten.conv2d.padding: 2,
    _aten.conv3d.default: 3,
    _aten.conv3d.padding: 3,
    _aten.conv_transpose1d.default: 1,
    _aten.conv_transpose2d.input: 2,
    _aten.conv_transpose3d.input: 3,
}
_PADDINGS = (_aten.constant_pad_nd.default, _aten.pad.default)
TRANSPOSED = {target for target in CONVOLUTIONS if "transpose" in str(target)}
# Of each dimension of a map: its position, a tap and its size in formulas, the variables of its
# kernel and stride, and its index in a patch.
_AXES = ("hwz", "abe", "HWZ", (("k", "s"), ("l", "t"), ("m", "u")), "pqv")
LINEAR_LAYERS = (_aten.linear.default, _aten.addmm.default)


class NotCovered(Exception):
    """Why a layer is none of the language, for the report."""


@dataclass(frozen=True)
class Found:
    """An operator in place of a layer.

    source: what the operator reads; zeros that the network pads it with are part of `maps`.
    maps: what becomes of each spatial dimension of a convolution.
    rows: whether the operator sees other dimensions of the same elements: those before the last one
    as one, or each that a dilation d divides as two, of which the second has d phases.
    """

    kind: str
    source: fx.Node
    computation: Computation
    weights: tuple[torch.Tensor, ...]
    bias: torch.Tensor | None
    channel: int
    maps: tuple[Map, ...] = ()
    rows: bool = False


@dataclass(frozen=True)
class Map:
    """One spatial dimension of the map of a convolution, and that of its operator.

    before, after: zeros that the operator reads around the input; a negative `after` cuts its end.
    size: of the operator's output, of which the convolution's is what follows `start` elements.
    """

    before: int
    after: int
    size: int
    start: int = 0


@dataclass(frozen=True)
class _Axis:
    """One spatial dimension of an operator: windows around elements, or patches side by side."""

    kernel: int
    stride: int
    patches: bool
    size: int  # of the output; with a dilation, of one of its phases
    dilation: int = 1


def as_operator(node: fx.Node, constant: dict[str, torch.Tensor], *, batch: bool) -> Found:
    """The operator that a convolution or a linear layer is.

    constant: the constants of the graph by the name of their node. batch: whether the first
    dimension of the graph's input takes any size.

    NotCovered where the language has no words for it, or it computes in another type than float32.
    """
    if node.meta["val"].dtype != torch.float32:
        raise NotCovered(f"it computes in {node.meta['val'].dtype}")
    if node.target in TRANSPOSED:
        return _transposed(node, constant)
    if node.target in CONVOLUTIONS:
        return _convolution(node, constant)
    return _linear(node, constant, batch)


def _convolution(node: fx.Node, constant: dict[str, torch.Tensor]) -> Found:
    rank = CONVOLUTIONS[node.target]  # type: ignore[index]
    given = NodeArguments(node)
    source, weight, bias = _operands(given, constant)
    groups, kernel = int(given["groups"]), list(weight.shape[2:])
    stride, dilation = (each_dimension(given[name], rank) for name in ("stride", "dilation"))
    _check_sizes(rank, source, node)
    outside = [int(n) for n in shape_of(node)[2:]]
    sides = _zeros(given["padding"], kernel, dilation)
    source, sides = _without_padding(source, sides)
    inside = [int(n) for n in shape_of(source)[2:]]
    for place, (s, d) in enumerate(zip(stride, dilation, strict=True)):
        if s > 1 and d > 1 and kernel[place] > 1:
            weight, dilation[place] = _spread(weight, 2 + place, d), 1
            kernel[place] = weight.shape[2 + place]
    axes, maps = [], []
    for k, s, d, (left, _), n, o in zip(
        kernel, stride, dilation, sides, inside, outside, strict=True
    ):
        axis, of_map = _axis(k, s, d if k > 1 else 1, left, n, o)
        axes.append(axis)
        maps.append(of_map)
    parsed, variables = _conv_operator(tuple(axes), groups, weight.shape)
    binding = _conv_binding(axes, groups, weight, variables)
    held = weight.reshape([*weight.shape[:2], *(k for k in kernel if k > 1)])
    if groups > 1:
        held = held.unflatten(0, (groups, -1))
        if weight.shape[1] == 1:
            held = held.squeeze(2)
            if weight.shape[0] == groups:
                held = held.squeeze(1)
    computation = Computation(parsed.text, binding)
    rows = any(axis.dilation > 1 for axis in axes)
    weights = (held.permute(parsed.order),)
    return Found(CONVOLUTION, source, computation, weights, bias, 1, tuple(maps), rows)


def _spread(weight: torch.Tensor, dimension: int, dilation: int) -> torch.Tensor:
    """A kernel with zeros between its taps, which stands for its dilation."""
    shape = list(weight.shape)
    shape[dimension] = dilation * (shape[dimension] - 1) + 1
    places = torch.arange(0, shape[dimension], dilation)
    return weight.new_zeros(shape).index_copy(dimension, places, weight)


def _axis(
    kernel: int, stride: int, dilation: int, left: int, inside: int, outside: int
) -> tuple[_Axis, Map]:
    """One dimension as windows around each element, or as patches that do not overlap.

    left: the zeros in front of the input. The operator's windows reach half a kernel to the left;
    its first results are dropped where that is more than `left`.
    """
    if left == 0 and dilation == 1 and (kernel == stride or outside == 1):
        # A single window is a patch, whatever its stride.
        return _Axis(kernel, kernel, True, outside), Map(0, outside * kernel - inside, outside)
    half = dilation * (kernel // 2)
    start = max(-(-(half - left) // stride), 0)
    before = start * stride - (half - left)
    step = max(stride, dilation)  # the operator's input has this many elements or a multiple
    least = max((start + outside) * stride, before + inside)
    read = -(-least // step) * step
    size = read // stride
    axis = _Axis(kernel, stride, False, size // dilation, dilation)
    return axis, Map(before, read - before - inside, size, start)


def _check_sizes(rank: int, source: fx.Node, node: fx.Node) -> None:
    inside, outside = shape_of(source), shape_of(node)
    if len(inside) != rank + 2 or not all(isinstance(n, int) for n in [*inside[1:], *outside[1:]]):
        raise NotCovered("a size that is not fixed")


def _zeros(
    padding: str | int | Sequence[int], kernel: Sequence[int], dilation: Sequence[int]
) -> list[tuple[int, int]]:
    """The zeros before and after each dimension that a convolution pads with."""
    if padding == "same":
        more = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(n // 2, n - n // 2) for n in more]
    if isinstance(padding, str):
        return [(0, 0)] * len(kernel)
    return [(p, p) for p in each_dimension(padding, len(kernel))]


def _without_padding(
    source: fx.Node, sides: list[tuple[int, int]]
) -> tuple[fx.Node, list[tuple[int, int]]]:
    """What a network pads with zeros in front of a convolution, and all zeros around that."""
    while source.target in _PADDINGS:
        given = NodeArguments(source)
        numbers: Sequence[int] = given["pad"]
        pairs = [*zip(numbers[::2], numbers[1::2], strict=True)]
        zeros = given["value"] in (None, 0) and not given.unread
        if not zeros or len(pairs) > len(sides) or any(min(pair) < 0 for pair in pairs):
            break
        pairs = [*reversed(pairs)]
        rank = len(sides) - len(pairs)
        sides = sides[:rank] + [
            (left + a, right + b) for (left, right), (a, b) in zip(sides[rank:], pairs, strict=True)
        ]
        source = given["self"]
    return source, sides


@dataclass(frozen=True)
class _Parsed:
    # Text, because what is cached must not keep objects of the extension until the very end.
    text: str
    order: tuple[int, ...]  # dimension of the layer's weight of each dimension of the operator's


@functools.lru_cache(maxsize=1024)
def _parsed(formula: str, inside: str, outside: str) -> _Parsed:
    operator, weights = Operator.parse_with_weights(formula, input=inside, output=outside)
    ((_, order),) = weights
    return _Parsed(operator.text, tuple(order))


def _conv_operator(
    axes: tuple[_Axis, ...], groups: int, weight: Sequence[int]
) -> tuple[_Parsed, list[tuple[str, str]]]:
    """The operator, and the variables of kernel and stride of each axis."""
    square = len({(a.kernel, a.stride, a.patches) for a in axes}) == 1
    letters, tap_names, extents, variables, _ = _AXES
    names = [variables[0]] * len(axes) if square else list(variables[: len(axes)])
    reads, sizes, taps = [], [], []
    for axis, (k, s), place, tap, size in zip(
        axes, names, letters, tap_names, extents, strict=False
    ):
        strided = place if axis.stride == 1 else f"{place}*{s}"
        extent = size if axis.stride == 1 else f"{s}*{size}"
        if axis.kernel > 1 and axis.patches:
            strided, extent = f"{place}*{k}+{tap}", f"{k}*{size}"
        elif axis.kernel > 1:
            strided += f"+{tap}-{k}/2"
        if axis.kernel > 1:
            taps.append(tap)
        reads.append(strided)
        sizes.append(extent)
    places, outer = list(letters[: len(axes)]), list(extents[: len(axes)])
    for number, axis in reversed([*enumerate(axes)]):
        if axis.dilation > 1:
            for held_names, phase in ((places, "p"), (reads, "p"), (outer, "P"), (sizes, "P")):
                held_names.insert(number + 1, f"{phase}{number}")
    depthwise = groups > 1 and list(weight[:2]) == [groups, 1]
    if groups == 1:
        out, read, sums, held = "o", "i", ["i"], ["o", "i"]
        channels = "C_out", "C_in"
    elif depthwise:
        out, read, sums, held = "c", "c", [], ["c"]
        channels = "C", "C"
    elif weight[1] == 1:
        out, read, sums, held = "G*D+c", "G", [], ["G", "c"]
        channels = "g*D", "g"
    else:
        out, read, sums, held = "G*D+c", "G*C+r", ["r"], ["G", "c", "r"]
        channels = "g*D", "g*C"
    total = ", ".join([*sums, *taps])
    formula = (
        f"y[{','.join(['n', out, *places])}] = "
        + (f"sum({total}) " if total else "")
        + f"x[{','.join(['n', read, *reads])}] * W[{','.join([*held, *taps])}]"
    )
    inside = f"[{', '.join(['N', channels[1], *sizes])}]"
    outside = f"[{', '.join(['N', channels[0], *outer])}]"
    return _parsed(formula, inside, outside), names


def _conv_binding(
    axes: list[_Axis], groups: int, weight: torch.Tensor, names: list[tuple[str, str]]
) -> dict[str, int]:
    out, inside = weight.shape[:2]
    sizes = {"N": 1}
    if groups == 1:
        sizes |= {"C_out": out, "C_in": inside}
    elif (out, inside) == (groups, 1):
        sizes |= {"C": out}
    else:
        sizes |= {"g": groups, "D": out // groups} | ({"C": inside} if inside > 1 else {})
    for axis, (k, s), size in zip(axes, names, _AXES[2], strict=False):
        sizes[size] = axis.size
        if axis.kernel > 1:
            sizes[k] = axis.kernel
        if axis.stride > 1 and not (axis.kernel > 1 and axis.patches):
            sizes[s] = axis.stride
    phases = {f"P{place}": a.dilation for place, a in enumerate(axes) if a.dilation > 1}
    return sizes | phases


def _transposed(node: fx.Node, constant: dict[str, torch.Tensor]) -> Found:
    """A transposed convolution: a convolution by windows of the input, with a result for each place
    in a patch."""
    rank = CONVOLUTIONS[node.target]  # type: ignore[index]
    given = NodeArguments(node)
    source, weight, bias = _operands(given, constant)
    given.without_effect("output_padding")  # the size of the result says it
    kernel, groups = list(weight.shape[2:]), int(given["groups"])
    stride, padding, dilation = (
        each_dimension(given[name], rank) for name in ("stride", "padding", "dilation")
    )
    _check_sizes(rank, source, node)
    inside, outside = ([int(n) for n in shape_of(each)[2:]] for each in (source, node))
    held = weight.unflatten(0, (groups, -1))  # [G, i, o, t, ...]
    windows, maps = [], []
    for axis, (k, s, p, d) in enumerate(zip(kernel, stride, padding, dilation, strict=True)):
        held, window = _by_place(held, 3 + 2 * axis, [tap * d - p for tap in range(k)], s)
        windows.append(window)
        read = max(inside[axis], -(-outside[axis] // s))
        maps.append(Map(0, read - inside[axis], read * s))
    parsed, variables = _transposed_operator(tuple(windows), tuple(stride), groups > 1)
    sizes = {"N": 1, "C_in": held.shape[1], "C_out": held.shape[2]}
    sizes |= {"g": groups} if groups > 1 else {}
    for size, of_map, (tap, place), window, step in zip(
        _AXES[2], maps, variables, windows, stride, strict=False
    ):
        sizes |= {size: of_map.size // step} | ({tap: window} if window > 1 else {})
        sizes |= {place: step} if step > 1 else {}
    channels, patches = list(held.shape[:3]), list(held.shape[3:])
    held = held.reshape([*channels[groups == 1 :], *(n for n in patches if n > 1)])
    weights = (held.permute(parsed.order),)
    computation = Computation(parsed.text, sizes)
    return Found(CONVOLUTION, source, computation, weights, bias, 1, tuple(maps))


def _by_place(
    weight: torch.Tensor, dimension: int, shifts: Sequence[int], stride: int
) -> tuple[torch.Tensor, int]:
    """The taps of one dimension by window and place in a patch, [.., window, stride, ..].

    A tap with a shift of stride * d + q reaches, from the input, place q of the patch d further on.
    """
    reached = [divmod(shift, stride) for shift in shifts]
    half = max(abs(d) for d, _ in reached)
    window = 2 * half + 1
    shape = list(weight.shape)
    shape[dimension] = window * stride
    places = torch.tensor([(half - d) * stride + q for d, q in reached])
    made = weight.new_zeros(shape).index_copy(dimension, places, weight)
    return made.unflatten(dimension, (window, stride)), window


def _transposed_operator(
    windows: tuple[int, ...], strides: tuple[int, ...], grouped: bool
) -> tuple[_Parsed, list[tuple[str, str]]]:
    """The operator, and the variables of window and stride of each dimension."""
    letters, tap_names, extents, variables, patch = _AXES
    square = len({*zip(windows, strides, strict=True)}) == 1
    names = [variables[0]] * len(windows) if square else list(variables[: len(windows)])
    writes, reads, larger, held, taps = [], [], [], [], []
    for window, stride, (k, s), place, tap, size, within in zip(
        windows, strides, names, letters, tap_names, extents, patch, strict=False
    ):
        writes.append(f"{place}*{s}+{within}" if stride > 1 else place)
        larger.append(f"{s}*{size}" if stride > 1 else size)
        reads.append(f"{place}+{tap}-{k}/2" if window > 1 else place)
        taps += [tap] if window > 1 else []
        held += [tap] if window > 1 else []
        held += [within] if stride > 1 else []
    out, read, group, factor = (
        ("G*C_out+o", "G*C_in+i", ["G"], "g*") if grouped else ("o", "i", [], "")
    )
    formula = (
        f"y[{','.join(['n', out, *writes])}] = sum({','.join(['i', *taps])}) "
        f"x[{','.join(['n', read, *reads])}] * W[{','.join([*group, 'i', 'o', *held])}]"
    )
    inside = f"[{', '.join(['N', factor + 'C_in', *extents[: len(windows)]])}]"
    outside = f"[{', '.join(['N', factor + 'C_out', *larger])}]"
    return _parsed(formula, inside, outside), names


def _linear(node: fx.Node, constant: dict[str, torch.Tensor], batch: bool) -> Found:
    given = NodeArguments(node)
    if node.target is _aten.addmm.default:
        source = given["mat1"]
        weight, added = _held(given["mat2"], constant).t(), _held(given["self"], constant)
        if added.dim() != 1 or added.shape[0] != weight.shape[0]:
            raise NotCovered("a bias that is not one for each output")
        bias: torch.Tensor | None = added
    else:
        source, weight, bias = _operands(given, constant)
    if given.unread:
        raise NotCovered("factors")
    inside = shape_of(source)
    rows = inside[1:-1] if batch else inside[:-1]
    if batch and len(inside) == 2:
        rows = [_samples(inside[0])]  # of one element of the batch
    if not all(isinstance(n, int) for n in rows):
        raise NotCovered("a batch that is not the first dimension")
    count = math.prod(int(n) for n in rows)
    if len(inside) == 2 and count == 1:
        parsed = _parsed("y[n,o] = sum(i) x[n,i] * W[o,i]", "[N, C_in]", "[N, C_out]")
        sizes = {}
    else:
        formula = "y[n,t,o] = sum(i) x[n,t,i] * W[o,i]"
        parsed = _parsed(formula, "[N, T, C_in]", "[N, T, C_out]")
        sizes = {"T": count}
    binding = {"N": 1, "C_in": weight.shape[1], "C_out": weight.shape[0]} | sizes
    computation = Computation(parsed.text, binding)
    weights = (weight.permute(parsed.order),)
    channel = 2 if sizes else 1
    whole = len(inside) == channel + 1 and (batch or inside[0] == 1)
    return Found(LINEAR, source, computation, weights, bias, channel, rows=not whole)


def _samples(size: int | torch.SymInt) -> int:
    """The factor k of a size k * batch; 1 for another."""
    if isinstance(size, int):
        return 1
    factor = size.node.expr.as_coeff_Mul()[0]
    return int(factor) if factor.is_Integer and factor > 0 else 1


def _operands(
    given: NodeArguments, constant: dict[str, torch.Tensor]
) -> tuple[fx.Node, torch.Tensor, torch.Tensor | None]:
    bias = given["bias"]
    return (
        given["input"],
        _held(given["weight"], constant),
        None if bias is None else _held(bias, constant),
    )


def _held(argument: object, constant: dict[str, torch.Tensor]) -> torch.Tensor:
    if not isinstance(argument, fx.Node) or argument.name not in constant:
        raise NotCovered("a weight that the network computes")
    return constant[argument.name]
