"""What transformers compute besides layers: embeddings of token ids, attention, products."""

from __future__ import annotations

import math

import torch
from torch import fx

from syno._util.errors import UserError
from syno.inference.library import program as memory
from syno.inference.library.builder import Builder
from syno.inference.library.program import Value, number
from syno.inference.library.registry import code as _code
from syno.inference.node_arguments import NodeArguments
from syno.inference.passes.clean import only_user
from syno.inference.trace import module_name

_aten = torch.ops.aten
_EXCHANGES = (_aten.transpose.int, _aten.permute.default)


@_code(_aten.embedding.default, ids=True)
def _embedding(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    # These are about gradients.
    given.without_effect("padding_idx", "scale_grad_by_freq", "sparse")
    table, tokens = build.contiguous(build.get(given["weight"])), build.get(given["indices"])
    if tokens.buffer.kind != memory.INPUT or not tokens.contiguous:
        raise UserError(
            "the network library has no code for an embedding of ids that the network computes"
        )
    y = build.program.new(node.meta["val"].shape)
    rows, width = table.shape
    count = y.view.numel() // width
    build.program.tokens = min(build.program.tokens or rows, rows)

    def step(at: memory.Address) -> str:
        return f"embedding<{width}>({at(table)}, {at(tokens)}, {at(y)}, {count}, team);"

    return build.step(step, [table, tokens], y, module_name(node))


@_code(_aten.scaled_dot_product_attention.default)
def _attention(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    q, k, v = (build.get(given[name]) for name in ("query", "key", "value"))
    lead = list(node.meta["val"].shape[:-2])
    if given["enable_gqa"]:
        k, v = (_for_each_query(build, each, q.shape[-3]) for each in (k, v))
    rows = [_rows(build, _expanded(each, [*lead, *each.shape[-2:]])) for each in (q, k, v)]
    (heads, length, width), (_, keys, _), (_, _, out) = (each.shape for each in rows)
    scale = given["scale"]
    factor = width**-0.5 if scale is None else float(scale)
    causal = bool(given["is_causal"])
    mask = None
    if given["attn_mask"] is not None:
        mask, causal = _mask(build, given["attn_mask"], [*lead, length, keys])
    y = _result(build, node, heads, length, out)
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

    return build.step(step, reads, y, module_name(node))


def _expanded(value: Value, shape: list[int]) -> Value:
    return Value(value.buffer, value.view.expand(shape))


def _for_each_query(build: Builder, value: Value, heads: int) -> Value:
    """Keys or values of groups of queries, once for each head of the group."""
    own, view = value.shape[-3], value.view.unsqueeze(-3)
    shape = [*value.shape[:-3], heads, *value.shape[-2:]]
    grouped = view.expand([*value.shape[:-2], heads // own, *value.shape[-2:]])
    return build.reshaped(Value(value.buffer, grouped), shape)


def _result(build: Builder, node: fx.Node, heads: int, length: int, width: int) -> Value:
    """The result of attention: rows of all heads side by side where they are joined next."""
    shape = list(node.meta["val"].shape)
    y = build.program.new(shape)
    user = only_user(node)
    if user is None or len(shape) != 4 or user.target not in _EXCHANGES:
        return y
    return Value(y.buffer, y.view.view(shape[0], length, heads // shape[0], width).transpose(1, 2))


def _heads_distance(y: Value) -> int:
    """The distance of the heads of a result; the batch is one image."""
    return int(y.view.stride(-3)) if y.view.dim() > 2 else 0


def _rows(build: Builder, value: Value) -> Value:
    """A tensor of three dimensions: those before the last two are one."""
    value = build.reshaped(value, [-1, *value.shape[-2:]])
    if value.view.stride(2) != 1 and value.shape[2] > 1:
        value = build.contiguous(value)
    return value


def _mask(build: Builder, node: fx.Node, shape: list[int]) -> tuple[Value | None, bool]:
    """What is added to the scores, as rows; or that each row is kept from later keys."""
    held = build.held.get(node.name)
    if held is None:
        mask = build.get(node)
        if mask.view.dtype == torch.bool:
            added = build.program.new(mask.shape)
            expression = f"a != Vector{{}} ? Vector{{}} : splat({number(-math.inf)})"
            mask = build.map(added, [mask], expression, f"{module_name(node)} (mask)")
    else:
        if held.dtype == torch.bool:
            held = torch.zeros(held.shape).masked_fill(~held, -math.inf)
        if _is_causal(held, shape):
            return None, True
        mask = build.program.constant(held)
    return _rows(build, _expanded(mask, shape)), False


def _is_causal(mask: torch.Tensor, shape: list[int]) -> bool:
    """Whether a mask keeps each row from later keys and does nothing else."""
    if mask.dim() < 2 or mask.numel() != math.prod(shape[-2:]):
        return False
    causal = torch.full(shape[-2:], -math.inf).triu(1)
    return torch.equal(mask.reshape(mask.shape[-2:]), causal)


_PRODUCTS = (_aten.matmul.default, _aten.bmm.default, _aten.mm.default)


@_code(*_PRODUCTS)
def _product(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    """A product of two tensors that the network computes; one with a weight is a layer."""
    a, b = build.get(given["self"]), build.get(given.first("other", "mat2"))
    if a.view.dim() == 1:
        a = Value(a.buffer, a.view.unsqueeze(0))
    if b.view.dim() == 1:
        b = Value(b.buffer, b.view.unsqueeze(1))
    lead = list(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    y = build.program.new(node.meta["val"].shape)
    (rows, terms), columns = a.shape[-2:], b.shape[-1]
    a = build.contiguous(_expanded(a, [*lead, rows, terms]))
    count = math.prod(lead)
    if math.prod(b.shape[:-2]) == 1:  # the same for all
        rows, count = rows * count, 1
    else:
        b = _expanded(b, [*lead, terms, columns])
    b = build.contiguous(b)
    sizes = f"{rows}, {terms}, {columns}"
    return build.step(
        lambda at: f"product<{sizes}>({at(a)}, {at(b)}, {at(y)}, {count}, team);",
        [a, b],
        y,
        module_name(node),
    )
