"""What transformers compute besides layers: embeddings of token ids, attention, products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.library import program as memory
from syno.inference.library.program import Value, number
from syno.inference.library.registry import code as _code
from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.clean import only_user
from syno.inference.trace import module_name

if TYPE_CHECKING:
    from syno.inference.library.lower import _Lowering

_aten = torch.ops.aten
_EXCHANGES = (_aten.transpose.int, _aten.permute.default)


@_code(_aten.embedding.default, ids=True)
def _embedding(self: _Lowering, node: fx.Node, given: NodeArguments) -> Value:
    # These are about gradients.
    given.without_effect("padding_idx", "scale_grad_by_freq", "sparse")
    table, tokens = self._contiguous(self._get(given["weight"])), self._get(given["indices"])
    if tokens.buffer.kind != memory.INPUT or not tokens.contiguous:
        raise UserError(
            "the network library has no code for an embedding of ids that the network computes"
        )
    y = self.program.new(node.meta["val"].shape)
    rows, width = table.shape
    count = y.view.numel() // width
    self.program.tokens = min(self.program.tokens or rows, rows)

    def step(at: memory.Address) -> str:
        return f"embedding<{width}>({at(table)}, {at(tokens)}, {at(y)}, {count}, team);"

    return self._step(step, [table, tokens], y, module_name(node))


@_code(_aten.scaled_dot_product_attention.default)
def _attention(self: _Lowering, node: fx.Node, given: NodeArguments) -> Value:
    q, k, v = (self._get(given[name]) for name in ("query", "key", "value"))
    lead = list(node.meta["val"].shape[:-2])
    if given["enable_gqa"]:
        k, v = (_for_each_query(self, each, q.shape[-3]) for each in (k, v))
    rows = [_rows(self, _expanded(each, [*lead, *each.shape[-2:]])) for each in (q, k, v)]
    (heads, length, width), (_, keys, _), (_, _, out) = (each.shape for each in rows)
    scale = given["scale"]
    factor = width**-0.5 if scale is None else float(scale)
    causal = bool(given["is_causal"])
    mask = None
    if given["attn_mask"] is not None:
        mask, causal = _mask(self, given["attn_mask"], [*lead, length, keys])
    y = _result(self, node, heads, length, out)
    reads = [*rows, *([] if mask is None else [mask])]
    places = [list(each.view.stride()[:2]) for each in rows]
    places.append([0, 0] if mask is None else list(mask.view.stride()[:2]))
    places.append([_heads_distance(y), int(y.view.stride(-2))])
    distances = ", ".join(f"{{{a}, {b}}}" for a, b in places)

    def step(at: memory.Address) -> str:
        operands = ", ".join([*(at(v) for v in rows), "nullptr" if mask is None else at(mask)])
        sizes = f"{length}, {keys}, {width}, {out}, {'true' if causal else 'false'}"
        more = f"{heads}, {distances}, {number(factor)}"
        return f"attention<{sizes}>({operands}, {at(y)}, {more}, team);"

    return self._step(step, reads, y, module_name(node))


def _expanded(value: Value, shape: list[int]) -> Value:
    return Value(value.buffer, value.view.expand(shape))


def _for_each_query(self: _Lowering, value: Value, heads: int) -> Value:
    """Keys or values of groups of queries, once for each head of the group."""
    own, view = value.shape[-3], value.view.unsqueeze(-3)
    shape = [*value.shape[:-3], heads, *value.shape[-2:]]
    grouped = view.expand([*value.shape[:-2], heads // own, *value.shape[-2:]])
    return self._reshaped(Value(value.buffer, grouped), shape)


def _result(self: _Lowering, node: fx.Node, heads: int, length: int, width: int) -> Value:
    """The result of attention: rows of all heads side by side where they are joined next."""
    shape = list(node.meta["val"].shape)
    y = self.program.new(shape)
    user = only_user(node)
    if user is None or len(shape) != 4 or user.target not in _EXCHANGES:
        return y
    return Value(y.buffer, y.view.view(shape[0], length, heads // shape[0], width).transpose(1, 2))


def _heads_distance(y: Value) -> int:
    """The distance of the heads of a result; the batch is one image."""
    return int(y.view.stride(-3)) if y.view.dim() > 2 else 0


def _rows(self: _Lowering, value: Value) -> Value:
    """A tensor of three dimensions: those before the last two are one."""
    value = self._reshaped(value, [-1, *value.shape[-2:]])
    if value.view.stride(2) != 1 and value.shape[2] > 1:
        value = self._contiguous(value)
    return value


def _mask(self: _Lowering, node: fx.Node, shape: list[int]) -> tuple[Value | None, bool]:
    """What is added to the scores, as rows; or that each row is kept from later keys."""
    held = self.held.get(node.name)
    if held is None:
        mask = self._get(node)
        if mask.view.dtype == torch.bool:
            added = self.program.new(mask.shape)
            expression = f"a != Vector{{}} ? Vector{{}} : splat({number(-math.inf)})"
            mask = self._map(added, [mask], expression, f"{module_name(node)} (mask)")
    else:
        if held.dtype == torch.bool:
            held = torch.zeros(held.shape).masked_fill(~held, -math.inf)
        if _is_causal(held, shape):
            return None, True
        mask = self.program.constant(held)
    return _rows(self, _expanded(mask, shape)), False


def _is_causal(mask: torch.Tensor, shape: list[int]) -> bool:
    """Whether a mask keeps each row from later keys and does nothing else."""
    if mask.dim() < 2 or mask.numel() != math.prod(shape[-2:]):
        return False
    causal = torch.full(shape[-2:], -math.inf).triu(1)
    return torch.equal(mask.reshape(mask.shape[-2:]), causal)


_PRODUCTS = (_aten.matmul.default, _aten.bmm.default, _aten.mm.default)


@_code(*_PRODUCTS)
def _product(self: _Lowering, node: fx.Node, given: NodeArguments) -> Value:
    """A product of two tensors that the network computes; one with a weight is a layer."""
    a, b = self._get(given["self"]), self._get(given.first("other", "mat2"))
    if a.view.dim() == 1:
        a = Value(a.buffer, a.view.unsqueeze(0))
    if b.view.dim() == 1:
        b = Value(b.buffer, b.view.unsqueeze(1))
    lead = list(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    y = self.program.new(node.meta["val"].shape)
    (rows, terms), columns = a.shape[-2:], b.shape[-1]
    a = self._contiguous(_expanded(a, [*lead, rows, terms]))
    count = math.prod(lead)
    if math.prod(b.shape[:-2]) == 1:  # the same for all
        rows, count = rows * count, 1
    else:
        b = _expanded(b, [*lead, terms, columns])
    b = self._contiguous(b)
    sizes = f"{rows}, {terms}, {columns}"
    return self._step(
        lambda at: f"product<{sizes}>({at(a)}, {at(b)}, {at(y)}, {count}, team);",
        [a, b],
        y,
        module_name(node),
    )
