"""Maps in another resolution: interpolation, and channels that become pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.library.program import Address, Value, number
from syno.inference.library.registry import code as _code
from syno.inference.trace import module_name

if TYPE_CHECKING:
    from syno.inference.library.lower import _Lowering

_aten = torch.ops.aten


@_code(
    _aten.upsample_nearest2d.vec,
    _aten.upsample_nearest2d.default,
    _aten.upsample_bilinear2d.vec,
    _aten.upsample_bilinear2d.default,
)
def _interpolation(self: _Lowering, node: fx.Node) -> None:
    """An element of the result is a weighted sum of elements of two rows and two columns.

    Which ones and by how much, torch says itself: it interpolates unit maps of one row or column.
    """
    x = self._contiguous(self._get(node.args[0]))
    y = self.program.new(node.meta["val"].shape)
    (height, width), (out_height, out_width) = x.shape[-2:], y.shape[-2:]
    rows = torch.eye(height)[None, :, :, None].expand(-1, -1, -1, width).contiguous()
    columns = torch.eye(width)[None, :, None, :].expand(-1, -1, height, -1).contiguous()
    by_row = _taps(node, rows)[0, :, :, 0]  # [height, out_height]
    by_column = _taps(node, columns)[0, :, 0, :]
    tables = [*_table("row", by_row), *_table("column", by_column)]
    maps = y.view.numel() // (out_height * out_width)
    sizes = f"{maps}, {height}, {width}, {out_height}, {out_width}"

    def step(at: Address) -> str:
        return "\n".join([*tables, f"interpolate({at(x)}, {at(y)}, {sizes}, row, column, team);"])

    self.values[node] = self._step(step, [x], y, module_name(node))


def _taps(node: fx.Node, probe: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = node.target(probe, *node.args[1:], **node.kwargs)  # type: ignore[operator]
    return found


def _table(name: str, weights: torch.Tensor) -> list[str]:
    """The two places of each result and their weights; `weights` is [places, results]."""
    entries = []
    for column in weights.T:
        places = column.nonzero().flatten().tolist()
        assert 1 <= len(places) <= 2, "an interpolation reads one or two places"
        first, last = places[0], places[-1]
        share = float(column[last]) if len(places) == 2 else 0.0
        entries.append(f"{{{first}, {last}, {number(float(column[first]))}, {number(share)}}}")
    lines = [", ".join(entries[i : i + 4]) for i in range(0, len(entries), 4)]
    body = ",\n  ".join(lines)
    return [f"static constexpr Taps {name}[] = {{\n  {body}}};"]


@_code(_aten.pixel_shuffle.default)
def _pixel_shuffle(self: _Lowering, node: fx.Node) -> None:
    x, factor = self._get(node.args[0]), int(node.args[1])  # type: ignore[arg-type]
    view = x.view.unflatten(-3, (-1, factor, factor))
    rank = view.dim()
    lead = list(range(rank - 5))
    c, a, b, h, w = range(rank - 5, rank)
    _copied(self, node, Value(x.buffer, view.permute([*lead, c, h, a, w, b])))


@_code(_aten.pixel_unshuffle.default)
def _pixel_unshuffle(self: _Lowering, node: fx.Node) -> None:
    x, factor = self._get(node.args[0]), int(node.args[1])  # type: ignore[arg-type]
    view = x.view.unflatten(-1, (-1, factor)).unflatten(-3, (-1, factor))
    rank = view.dim()
    lead = list(range(rank - 5))
    c, h, a, w, b = range(rank - 5, rank)
    _copied(self, node, Value(x.buffer, view.permute([*lead, c, a, b, h, w])))


def _copied(self: _Lowering, node: fx.Node, moved: Value) -> None:
    y = self.program.new(moved.shape)
    self._map(y, [moved], "a", module_name(node))
    self.values[node] = Value(y.buffer, y.view.view(node.meta["val"].shape))


@_code(_aten.group_norm.default)
def _group_norm(self: _Lowering, node: fx.Node) -> None:
    x = self._contiguous(self._get(node.args[0]))
    groups = int(node.args[1])  # type: ignore[arg-type]
    given = [*node.args[2:], *[None] * 3][:3]
    epsilon = 1e-5 if given[2] is None else float(given[2])  # type: ignore[arg-type]
    rows, about = x.shape[0] * groups, module_name(node)
    length = x.view.numel() // rows
    plain = self.program.new(x.shape)
    values = f"nullptr, nullptr, {{}}, {rows}, {length}, {number(epsilon)}, team"
    self._step(lambda at: f"layer_norm({at(x)}, {values.format(at(plain))});", [x], plain, about)
    operands, terms = [plain], "a"
    for name, sign in zip(given[:2], "*+", strict=True):
        if name is not None:
            held = self._get(name)
            over = held.view.view([-1, *[1] * (x.view.dim() - 2)])
            terms += f" {sign} {'abc'[len(operands)]}"
            operands.append(Value(held.buffer, over))
    self.values[node] = plain
    if len(operands) > 1:
        y = self.program.new(x.shape)
        self.values[node] = self._map(y, operands, terms, about)


@_code(_aten.matmul.default, _aten.bmm.default)
def _product(self: _Lowering, node: fx.Node) -> None:
    """A product of two tensors that the network computes; one with a weight is a layer."""
    a, b = (self._contiguous(self._get(argument)) for argument in node.args[:2])
    if a.view.dim() < 2 or b.view.dim() < 2 or a.shape[:-2] != b.shape[:-2]:
        raise UserError(
            f"the network library has no code for '{node.target}' of the shapes {a.shape} and "
            f"{b.shape}"
        )
    y = self.program.new(node.meta["val"].shape)
    rows, terms, columns = *a.shape[-2:], b.shape[-1]
    count = y.view.numel() // (rows * columns)
    sizes = f"{rows}, {terms}, {columns}"
    self.values[node] = self._step(
        lambda at: f"product<{sizes}>({at(a)}, {at(b)}, {at(y)}, {count}, team);",
        [a, b],
        y,
        module_name(node),
    )
