"""Filters that select layers of a network, and the report on its layers."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from syno._util import checks, numbers
from syno._util.errors import UserError
from syno._util.tables import Table

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class LayerFilter:
    """A filter that selects layers to replace.

    `conv1d`, `conv2d`, `conv3d`, `conv_transpose1d`, `conv_transpose2d`, `conv_transpose3d` and
    `linear` create it. None allows all values, and a tuple allows each of its values. `name` is a
    pattern such as "layer[34].*". `minimum` is the smallest number of channels and extent of the
    feature map. pool: whether the feature map of a slot with a stride is first averaged over
    windows of that size; otherwise an operator must make the feature map smaller itself. A slot of
    a transposed convolution never pools, and layers with a dilation have no stride.
    """

    kind: str
    kernel: tuple[int, ...] | None = None
    groups: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None
    dilation: tuple[int, ...] | None = None
    name: str | None = None
    minimum: int = 1
    pool: bool = True

    def __post_init__(self) -> None:
        if self.name is not None:
            checks.text("'name'", self.name)
        checks.whole("'minimum'", self.minimum, least=1)

    def refusal(self, name: str, layer: nn.Module) -> str | None:
        """Return why a layer of this kind is kept, None if it may be replaced."""
        if self.name is not None and not fnmatch.fnmatchcase(name, self.name):
            return f"name is not {self.name}"
        return None if self.kind == "linear" else self._conv_refusal(cast("nn.Conv2d", layer))

    def _conv_refusal(self, layer: nn.Conv2d) -> str | None:
        kernel, stride = layer.kernel_size, layer.stride
        if len({*kernel}) > 1 or len({*stride}) > 1:
            return f"kernel {times(kernel)} with stride {times(stride)} is not square"
        if self.kernel is not None and kernel[0] not in self.kernel:
            return f"kernel {kernel[0]}"
        if self.groups is not None and layer.groups not in self.groups:
            return f"groups {layer.groups}"
        if self.stride is not None and stride[0] not in self.stride:
            return f"stride {stride[0]}"
        if layer.transposed:
            return _enlarging_refusal(layer)
        dilation = dilation_of(layer)
        if self.dilation is not None and not {*dilation} <= {*self.dilation}:
            return f"dilation {times(dilation)}"
        if dilation != (1,) * len(kernel) and stride[0] > 1:
            return f"dilation {times(dilation)} with stride {stride[0]}"
        padding = layer.padding
        same = padding == "same" or padding == tuple(d * (kernel[0] // 2) for d in dilation)
        same = same and kernel[0] % 2 == 1
        if not (same or divides_map(layer)) or layer.padding_mode != "zeros":
            return f"padding {padding} ({layer.padding_mode}) does not keep the feature map's size"
        return None


def dilation_of(layer: nn.Conv2d) -> tuple[int, ...]:
    """The dilation of a convolution in each dimension; that of a single tap means nothing."""
    sides = zip(layer.dilation, layer.kernel_size, strict=True)
    return tuple(d if k > 1 else 1 for d, k in sides)


def divides_map(layer: nn.Conv2d) -> bool:
    """Whether a strided convolution divides a size by its stride, such as kernel 4, 2 and 1."""
    (kernel, *_), (stride, *_) = layer.kernel_size, layer.stride
    return stride > 1 and all(kernel - 2 * int(padding) == stride for padding in layer.padding)


def _enlarging_refusal(layer: nn.Conv2d) -> str | None:
    """Why a transposed convolution does not map a size H to stride * H by plain taps."""
    (kernel, *_), (stride, *_) = layer.kernel_size, layer.stride
    if {*layer.dilation} != {1}:
        return f"dilation {layer.dilation[0]}"
    sides = zip(cast("tuple[int, ...]", layer.padding), layer.output_padding, strict=True)
    if all(kernel - 2 * padding + more == stride for padding, more in sides):
        return None
    return (
        f"padding {layer.padding} and output padding {layer.output_padding} do not give a feature "
        f"map of {stride} times the size"
    )


def conv2d(
    *,
    kernel: int | tuple[int, ...] | None = None,
    groups: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] = 1,
    dilation: int | tuple[int, ...] | None = None,
    name: str | None = None,
    minimum: int = 4,
    pool: bool = True,
) -> LayerFilter:
    """Select convolutions [N, C_in, H, W] -> [N, C_out, H, W] that keep the feature-map size.

    With stride=(1, 2), convolutions of stride 2 become slots, too; their feature maps are first
    averaged over 2x2. With pool=False they are not, and such a slot is for operators of a
    specification such as [N, C_in, s*H, s*H] -> [N, C_out, H, H] with s=2. An operator in the place
    of a layer with a dilation of d computes on each of the d x d phases of the map, so that its
    windows are dilated, too; H and W are those of a phase. Layers whose number of channels, H or W
    is below `minimum` are kept.
    """
    strides = _choices("stride", stride)
    if strides is None or any(s not in (1, 2) for s in strides):
        raise UserError(f"stride must be 1, 2 or (1, 2), got {stride!r}")
    return _conv("conv2d", kernel, groups, strides, dilation, name, minimum, pool)


def conv1d(
    *,
    kernel: int | tuple[int, ...] | None = None,
    groups: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] = 1,
    dilation: int | tuple[int, ...] | None = None,
    name: str | None = None,
    minimum: int = 4,
    pool: bool = True,
) -> LayerFilter:
    """Select convolutions [N, C_in, L] -> [N, C_out, L] that keep the length.

    Arguments are as in `conv2d`. Any stride may be selected; the signal of such a slot is first
    averaged over windows of that size, or with pool=False the operator must make it shorter.
    """
    return _conv("conv1d", kernel, groups, stride, dilation, name, minimum, pool)


def conv3d(
    *,
    kernel: int | tuple[int, ...] | None = None,
    groups: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] = 1,
    dilation: int | tuple[int, ...] | None = None,
    name: str | None = None,
    minimum: int = 4,
    pool: bool = True,
) -> LayerFilter:
    """Select convolutions [N, C_in, D, H, W] -> [N, C_out, D, H, W] that keep the size.

    Arguments are as in `conv1d`.
    """
    return _conv("conv3d", kernel, groups, stride, dilation, name, minimum, pool)


def conv_transpose2d(
    *,
    kernel: int | tuple[int, ...] | None = None,
    groups: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    name: str | None = None,
    minimum: int = 4,
) -> LayerFilter:
    """Select transposed convolutions [N, C_in, H, W] -> [N, C_out, s*H, s*W] of any stride s.

    Their feature maps must become `stride` times as large, as with a kernel of the size of the
    stride, or with kernel 4, stride 2 and padding 1. An operator in such a slot makes the feature
    map larger itself. Layers whose number of channels, H or W is below `minimum` are kept.
    """
    return _conv("conv_transpose2d", kernel, groups, stride, None, name, minimum, pool=False)


def conv_transpose1d(
    *,
    kernel: int | tuple[int, ...] | None = None,
    groups: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    name: str | None = None,
    minimum: int = 4,
) -> LayerFilter:
    """Select transposed convolutions [N, C_in, L] -> [N, C_out, s*L]; see `conv_transpose2d`."""
    return _conv("conv_transpose1d", kernel, groups, stride, None, name, minimum, pool=False)


def conv_transpose3d(
    *,
    kernel: int | tuple[int, ...] | None = None,
    groups: int | tuple[int, ...] | None = None,
    stride: int | tuple[int, ...] | None = None,
    name: str | None = None,
    minimum: int = 4,
) -> LayerFilter:
    """Select transposed convolutions of [N, C_in, D, H, W]; see `conv_transpose2d`."""
    return _conv("conv_transpose3d", kernel, groups, stride, None, name, minimum, pool=False)


def _conv(
    kind: str,
    kernel: int | tuple[int, ...] | None,
    groups: int | tuple[int, ...] | None,
    stride: int | tuple[int, ...] | None,
    dilation: int | tuple[int, ...] | None,
    name: str | None,
    minimum: int,
    pool: bool,
) -> LayerFilter:
    return LayerFilter(
        kind,
        kernel=_choices("kernel", kernel),
        groups=_choices("groups", groups),
        stride=_choices("stride", stride),
        dilation=_choices("dilation", dilation),
        name=name,
        minimum=minimum,
        pool=pool,
    )


def linear(*, name: str | None = None, minimum: int = 4) -> LayerFilter:
    """Select linear layers [N, ..., H_in] -> [N, ..., H_out], and the `Conv1D` of transformers.

    The dimensions between the batch and H_in are seq_len of an operator: the positions of a
    sequence, or those of a feature map [N, H, W, H_in], row by row.
    """
    return LayerFilter("linear", name=name, minimum=minimum)


@dataclass(frozen=True)
class LayerRow:
    """A layer of the report.

    macs: MACs for one sample, None if the layer was not traced.
    share: fraction of the MACs of the whole network.
    params: elements of the weight; a bias stays in the slot in any case.
    status: slot (with its original layer), replaced, or kept for the given `reason`.
    pool: size of the average pooling before the operator (its stride); 1 for none.
    dilation: of the layer; the sizes are those of a phase, of which the operator computes each.
    runs: how many times it runs for one sample.
    new_macs, new_params: those of the operator in the place of the layer; None if it is not
        replaced.
    """

    name: str
    layer: str
    macs: int | None
    share: float | None
    binding: dict[str, int] = field(default_factory=dict)
    status: str = "kept"
    reason: str = ""
    params: int = 0
    pool: int = 1
    dilation: tuple[int, ...] = ()
    runs: int = 1
    new_macs: int | None = None
    new_params: int | None = None

    @property
    def pooling(self) -> str:
        """The window of the pooling, such as 2x2."""
        return times((self.pool,) * sum(name in self.binding for name in ("L", "D", "H", "W")))


@dataclass(frozen=True)
class LayerReport:
    """A report on every layer of the replaceable kinds.

    macs: MACs of the baseline network for one sample: convolutions, linear layers and matrix
        products such as attention. None if it was not traced.
    params: parameters of the baseline network; None if it has no slots.
    """

    rows: tuple[LayerRow, ...]
    macs: int | None = None
    params: int | None = None

    @property
    def replaced(self) -> list[LayerRow]:
        """The layers that an operator replaces."""
        return [row for row in self.rows if row.status == "replaced"]

    @property
    def kept(self) -> list[LayerRow]:
        """The layers that are kept, with a reason."""
        return [row for row in self.rows if row.status == "kept"]

    @property
    def slots(self) -> list[LayerRow]:
        """The slots that hold their original layers."""
        return [row for row in self.rows if row.status == "slot"]

    @property
    def new_macs(self) -> int | None:
        """MACs of the network as it is now, with its operators; None if they are unknown."""
        counts = [(row.macs, row.new_macs) for row in self.replaced]
        if self.macs is None or any(None in each for each in counts):
            return None
        return self.macs + sum((new or 0) - (old or 0) for old, new in counts)

    @property
    def new_params(self) -> int | None:
        """Parameters of the network as it is now, with its operators."""
        if self.params is None:
            return None
        return self.params + sum((row.new_params or 0) - row.params for row in self.replaced)

    @property
    def replaced_share(self) -> float:
        """The fraction of the MACs of the baseline network in the replaced layers."""
        return sum(row.share or 0.0 for row in self.replaced)

    def bindings(self) -> list[tuple[dict[str, int], int]]:
        """Return the (sizes, number of layers) of slots and replaced layers, in order."""
        counted: dict[tuple[tuple[str, int], ...], int] = {}
        for row in self.rows:
            if row.status != "kept":
                key = tuple(row.binding.items())
                counted[key] = counted.get(key, 0) + 1
        return [(dict(key), count) for key, count in counted.items()]

    def as_table(self) -> Table:
        """Return a row for each layer.

        Once layers are replaced, MACs and parameters of operators are beside those of the layers.
        """
        columns: list[tuple[str, Callable[[LayerRow], str]]] = [
            ("layer", lambda row: row.name),
            ("kind?", lambda row: row.layer),
            ("sizes", lambda row: " ".join(f"{k}={v}" for k, v in row.binding.items())),
            ("MACs>?", lambda row: _counted(row.macs)),
            ("share>", lambda row: "" if row.share is None else f"{row.share:.1%}"),
            ("params>?", lambda row: _counted(row.params)),
        ]
        if self.replaced:
            columns.append(("new MACs>?", lambda row: _counted(row.new_macs)))
            columns.append(("new params>?", lambda row: _counted(row.new_params)))
        return Table.of(self.rows, *columns, ("status~", _status))

    def table(self) -> str:
        """Return the report as text, with a line for each layer."""
        return "\n".join([*self.as_table().lines(), *self.totals()])

    def totals(self) -> list[str]:
        """Return lines with the totals of all layers."""
        parts = [
            self._part(self.replaced, f"{len(self.replaced)} replaced"),
            self._part(self.slots, numbers.counted(len(self.slots), "free slot")),
            f"{len(self.kept)} kept",
        ]
        lines = [f"{numbers.counted(len(self.rows), 'layer')}: {', '.join(parts)}"]
        if self.params is not None:
            macs = "" if self.macs is None else f"{self.macs:,} MACs a sample, "
            lines.append(f"whole network: {macs}{self.params:,} parameters")
        if self.replaced and self.new_params is not None:
            macs = "" if self.new_macs is None else f"{self.new_macs:,} MACs a sample, "
            lines.append(f"with operators: {macs}{self.new_params:,} parameters")
        return lines

    def _part(self, rows: list[LayerRow], counted: str) -> str:
        shares = []
        if rows and all(row.share is not None for row in rows):
            shares.append(f"{sum(row.share or 0.0 for row in rows):.1%} of the MACs")
        if rows and self.params:
            shares.append(f"{sum(row.params for row in rows) / self.params:.1%} of the parameters")
        return counted + (f" ({', '.join(shares)})" if shares else "")

    def __str__(self) -> str:
        return self.table()


def _counted(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _status(row: LayerRow) -> str:
    if row.status == "kept":
        return f"kept: {row.reason}"
    if row.dilation:
        return f"{row.status}, on each phase"
    if row.pool == 1:
        return row.status
    window = row.pooling
    pooling = f"{window} average pooling" if "x" in window else f"average pooling of {window}"
    return f"{row.status}, {pooling} first"


def is_small_map(row: LayerRow) -> bool:
    """Whether a layer is kept because its feature map is below the minimum of its filter.

    A 1x1 convolution of a single position is not: it follows a mean over any feature map.
    """
    sizes = {name: size for name, size in row.binding.items() if name in ("H", "W")}
    if row.layer.startswith("conv 1x1") and {*sizes.values()} == {1}:
        return False
    small = tuple(f"{name}={size}" for name, size in sizes.items())
    return row.reason.startswith(small) and " is below " in row.reason


def reasons(rows: list[LayerRow]) -> str:
    """Return why layers are kept, with a line for each kind and reason."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        reason = row.reason or "is a slot already"
        grouped.setdefault((row.layer, reason), []).append(row.name)
    lines = []
    for (layer, reason), names in grouped.items():
        some = ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
        lines.append(f"  {some} ({layer}): {reason}")
    return "\n".join(lines)


def _choices(name: str, value: int | tuple[int, ...] | None) -> tuple[int, ...] | None:
    if value is None:
        return None
    values = tuple(value) if isinstance(value, (tuple, list, set)) else (value,)
    if not all(checks.is_whole(v, 1) for v in values) or not values:
        raise UserError(f"'{name}' is a positive integer or a tuple of some, got {value!r}")
    return values


def times(pair: tuple[int, ...]) -> str:
    """Format (3, 3) as 3x3."""
    return "x".join(str(n) for n in pair)
