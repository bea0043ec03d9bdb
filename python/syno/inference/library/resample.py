"""Maps in another resolution: interpolation, and channels that become pixels."""

from __future__ import annotations

import math

import torch
from torch import fx

from syno.inference.library.builder import Builder
from syno.inference.library.program import Address, Value, number
from syno.inference.library.registry import code as _code
from syno.inference.library.registry import overloads
from syno.inference.node_arguments import NodeArguments
from syno.inference.trace import module_name

_aten = torch.ops.aten


# Interpolation of maps and signals: the operator of torch for one dimension.
_NEAREST = {
    **dict.fromkeys(overloads("upsample_nearest1d", "vec", "default"), _aten.upsample_nearest1d),
    **dict.fromkeys(overloads("upsample_nearest2d", "vec", "default"), _aten.upsample_nearest1d),
    **dict.fromkeys(
        [
            *overloads("_upsample_nearest_exact1d", "vec", "default"),
            *overloads("_upsample_nearest_exact2d", "vec", "default"),
        ],
        _aten._upsample_nearest_exact1d,
    ),
}
_LINEAR = (
    *overloads("upsample_linear1d", "vec", "default"),
    *overloads("upsample_bilinear2d", "vec", "default"),
)


@_code(*_NEAREST)
def _nearest(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    """An element of the result is one of a row and a column, which torch itself chooses."""
    tables = []
    for name, size, out, scale in _each_axis(node, given):
        places = torch.arange(size, dtype=torch.float32)[None, None]
        found = _NEAREST[node.target].default(places, [out], scale)[0, 0]
        tables.append(_static("int", name, [str(int(place)) for place in found.tolist()]))
    return _interpolated(build, node, given, tables, "nearest")


@_code(*_LINEAR)
def _linear(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    """An element of the result is a weighted sum of elements of two rows and two columns.

    Which ones and by how much, torch says itself: it interpolates unit signals.
    """
    tables, corners = [], given["align_corners"]
    for name, size, out, scale in _each_axis(node, given):
        units = torch.eye(size)[None]
        weights = _aten.upsample_linear1d.default(units, [out], corners, scale)[0]
        tables.append(
            _static("Taps", name, [_taps(each, corners and size > 1) for each in weights.T])
        )
    return _interpolated(build, node, given, tables, "interpolate")


_CUBIC = overloads("upsample_bicubic2d", "vec", "default")
# Of each place of a result the four elements that it is made of.
_FOUR = "struct Four { int at[4]; float by[4]; };"


@_code(*_CUBIC)
def _cubic(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    """An element of the result is a weighted sum of elements of four rows and four columns."""
    tables, corners = [_FOUR], given["align_corners"]
    for name, size, out, scale in _each_axis(node, given):
        units = torch.eye(size)[None, :, :, None]
        weights = _aten.upsample_bicubic2d.default(units, [out, 1], corners, scale, None)[
            0, :, :, 0
        ]
        tables.append(_static("Four", name, [_four(each) for each in weights.T]))
    x = build.contiguous(build.get(given.first("input", "self")))
    y = build.program.new(node.meta["val"].shape)
    (height, width), (out_height, out_width) = x.shape[2:], y.shape[2:]
    rows = math.prod(y.shape[:3])

    def step(at: Address) -> str:
        return "\n".join(
            [
                *tables,
                f"for (long i = team.begin({rows}); i < team.end({rows}); ++i) {{",
                f"  const float* const from = {at(x)} + i / {out_height} * {height * width};",
                f"  const Four& r = row[i % {out_height}];",
                f"  for (long j = 0; j < {out_width}; ++j) {{",
                "    const Four& c = column[j];",
                "    float sum = 0;",
                "    for (long a = 0; a < 4; ++a)",
                "      for (long b = 0; b < 4; ++b)",
                f"        sum += r.by[a] * c.by[b] * from[r.at[a] * {width} + c.at[b]];",
                f"    {at(y)}[i * {out_width} + j] = sum;",
                "  }",
                "}",
            ]
        )

    return build.step(step, [x], y, module_name(node))


def _four(weights: torch.Tensor) -> str:
    """The places of a result and their weights, from the weights of all places."""
    places = weights.nonzero().flatten().tolist()
    assert 1 <= len(places) <= 4, "an interpolation reads at most four places"
    by = [number(float(weights[place])) for place in places]
    unused = 4 - len(places)
    at = ", ".join(map(str, [*places, *[places[0]] * unused]))
    return f"{{{{{at}}}, {{{', '.join([*by, *['0.0f'] * unused])}}}}}"


def _each_axis(node: fx.Node, given: NodeArguments) -> list[tuple[str, int, int, float | None]]:
    """The name of its table, size, result and scale of rows and columns; a signal is one row."""
    given.without_effect("output_size")  # the shape of the result says it
    inside, outside = (
        list(each.meta["val"].shape[2:]) for each in (given.first("input", "self"), node)
    )
    if "scale_factors" in given:
        scales = given["scale_factors"] or [None] * len(inside)
    elif "scales" in given:
        scales = [given["scales"]]
    else:
        scales = [given["scales_h"], given["scales_w"]]
    axes = list(zip(inside, outside, scales, strict=True))
    if len(axes) == 1:
        axes.insert(0, (1, 1, None))
    return [(name, *axis) for name, axis in zip(("row", "column"), axes, strict=True)]


def _interpolated(
    build: Builder, node: fx.Node, given: NodeArguments, tables: list[str], function: str
) -> Value:
    x = build.contiguous(build.get(given.first("input", "self")))
    y = build.program.new(node.meta["val"].shape)
    inside, outside = ([1, *each.shape[2:]][-2:] for each in (x, y))
    sizes = ", ".join(map(str, (y.view.numel() // math.prod(outside), *inside, *outside)))

    def step(at: Address) -> str:
        return "\n".join([*tables, f"{function}({at(x)}, {at(y)}, {sizes}, row, column, team);"])

    return build.step(step, [x], y, module_name(node))


def _taps(weights: torch.Tensor, corners: bool) -> str:
    """The two places of a result and their weights, from the weights of all places."""
    places = weights.nonzero().flatten().tolist()
    assert 1 <= len(places) <= 2, "an interpolation reads one or two places"
    # As in PyTorch, the second place is the next one, also where its weight is 0: infinity times 0
    # is NaN. Behind the last element, unless corners are aligned, both weights are of that one.
    first = places[0]
    last = min(first + 1, len(weights) - 1)
    both = float(weights[first])
    share = float(weights[last]) if last > first else 0.0 if corners else both / 2
    own = both - share if last == first else both
    return f"{{{first}, {last}, {number(own)}, {number(share)}}}"


def _static(kind: str, name: str, entries: list[str]) -> str:
    lines = [", ".join(entries[i : i + 4]) for i in range(0, len(entries), 4)]
    body = ",\n  ".join(lines)
    return f"static constexpr {kind} {name}[] = {{\n  {body}}};"


@_code(_aten.pixel_shuffle.default)
def _pixel_shuffle(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x, factor = build.get(given["self"]), int(given["upscale_factor"])
    view = x.view.unflatten(-3, (-1, factor, factor))
    rank = view.dim()
    lead = list(range(rank - 5))
    c, a, b, h, w = range(rank - 5, rank)
    return _copied(build, node, Value(x.buffer, view.permute([*lead, c, h, a, w, b])))


@_code(_aten.pixel_unshuffle.default)
def _pixel_unshuffle(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x, factor = build.get(given["self"]), int(given["downscale_factor"])
    view = x.view.unflatten(-1, (-1, factor)).unflatten(-3, (-1, factor))
    rank = view.dim()
    lead = list(range(rank - 5))
    c, h, a, w, b = range(rank - 5, rank)
    return _copied(build, node, Value(x.buffer, view.permute([*lead, c, a, b, h, w])))


@_code(_aten.channel_shuffle.default)
def _channel_shuffle(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    x = build.get(given["self"])
    view = x.view.unflatten(1, (int(given["groups"]), -1)).transpose(1, 2)
    return _copied(build, node, Value(x.buffer, view))


def _copied(build: Builder, node: fx.Node, moved: Value) -> Value:
    y = build.program.new(moved.shape)
    build.map(y, [moved], "a", module_name(node))
    return Value(y.buffer, y.view.view(node.meta["val"].shape))
