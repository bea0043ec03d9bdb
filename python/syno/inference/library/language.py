"""What transformers compute besides layers: embeddings of token ids, and attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.library import program as memory
from syno.inference.library.program import Value, number
from syno.inference.library.registry import code as _code
from syno.inference.passes.clean import only_user
from syno.inference.trace import module_name

if TYPE_CHECKING:
    from syno.inference.library.lower import _Lowering

_aten = torch.ops.aten
_EXCHANGES = (_aten.transpose.int, _aten.permute.default)


@_code(_aten.embedding.default)
def _embedding(self: _Lowering, node: fx.Node) -> None:
    table, tokens = self._get(node.args[0]), self._get(node.args[1])
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

    self.values[node] = self._step(step, [table, tokens], y, module_name(node))


def check_types(node: fx.Node, values: list[Value]) -> None:
    """UserError where a node computes with token ids: only embeddings and views do."""
    if any(value.view.dtype != torch.float32 for value in values):
        raise UserError(f"the network library has no code for '{node.target}' of token ids")


@_code(_aten.scaled_dot_product_attention.default)
def _attention(self: _Lowering, node: fx.Node) -> None:
    given = dict(zip(("q", "k", "v", "mask", "dropout", "causal"), node.args, strict=False))
    given |= node.kwargs
    rows = [_rows(self, self._get(given[name])) for name in "qkv"]
    (heads, length, width), (_, keys, _), (_, _, out) = (v.shape for v in rows)
    scale = given.get("scale")
    factor = width**-0.5 if scale is None else float(scale)  # type: ignore[arg-type]
    mask = _mask(self, given.get("mask"), length, keys)
    causal = bool(given.get("causal", given.get("is_causal", False)))
    if mask is not None and _is_causal(mask):
        mask, causal = None, True
    held = None if mask is None else self.program.constant(mask)
    y = _result(self, node, heads, length, out)
    to = [_heads_distance(y), int(y.view.stride(-2))]
    reads = [*rows, *([] if held is None else [held])]

    def step(at: memory.Address) -> str:
        places = [[v.view.stride(0), v.view.stride(1)] for v in rows]
        distances = ", ".join(f"{{{a}, {b}}}" for a, b in [*places, to])
        operands = ", ".join([*(at(v) for v in rows), "nullptr" if held is None else at(held)])
        sizes = f"{length}, {keys}, {width}, {out}, {'true' if causal else 'false'}"
        more = f"{heads}, {distances}, {number(factor)}"
        return f"attention<{sizes}>({operands}, {at(y)}, {more}, team);"

    self.values[node] = self._step(step, reads, y, module_name(node))


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
    view = value.view
    try:
        view = view.view([-1, *view.shape[-2:]])
    except RuntimeError:
        value = self._contiguous(value)
        view = value.view.view([-1, *value.shape[-2:]])
    if view.stride(2) != 1 and view.shape[2] > 1:
        value = self._contiguous(Value(value.buffer, view))
        view = value.view
    return Value(value.buffer, view)


def _mask(self: _Lowering, node: object, length: int, keys: int) -> torch.Tensor | None:
    """What is added to the scores of each row and key."""
    if node is None:
        return None
    if not isinstance(node, fx.Node) or node.name not in self.held:
        raise UserError("the network library has no code for a mask that depends on the input")
    mask = self.held[node.name]
    if mask.dtype == torch.bool:
        mask = torch.zeros(mask.shape).masked_fill(~mask, -math.inf)
    if mask.numel() != math.prod(mask.shape[-2:]):
        raise UserError("the network library has no code for a mask of each head")
    return mask.reshape(mask.shape[-2:]).expand(length, keys).contiguous()


def _is_causal(mask: torch.Tensor) -> bool:
    """Whether a mask keeps each row from later keys and does nothing else."""
    return torch.equal(mask, torch.full(mask.shape, -math.inf).triu(1))
