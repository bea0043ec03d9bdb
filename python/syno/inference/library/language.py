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
    bounds, number_ = build.program.tokens, tokens.buffer.number
    bounds[number_] = min(bounds[number_], rows)

    def step(at: memory.Address) -> str:
        return f"embedding<{width}>({at(table)}, {at(tokens)}, {at(y)}, {count}, team);"

    return build.step(step, [table, tokens], y, module_name(node))


@_code(_aten.scaled_dot_product_attention.default)
def _attention(build: Builder, node: fx.Node, given: NodeArguments) -> Value:
    q, k, v = (build.get(given[name]) for name in ("query", "key", "value"))
    if k.shape[-2] != v.shape[-2]:  # PyTorch reads what lies behind the shorter one
        raise UserError(f"attention has {k.shape[-2]} keys and {v.shape[-2]} values")
    lead = list(node.meta["val"].shape[:-2])
    # Heads of keys and values: one for each group of heads of the queries.
    group = q.shape[-3] // k.shape[-3] if given["enable_gqa"] else 1
    owned = [*lead[:-1], lead[-1] // group] if lead else []
    rows = [_of_heads(build, *each) for each in ((q, lead), (k, owned), (v, owned))]
    length, width, keys, out = (*rows[0].shape[2:], *rows[2].shape[2:])
    scale = given["scale"]
    factor = width**-0.5 if scale is None else float(scale)
    causal = bool(given["is_causal"])
    mask = None
    if given["attn_mask"] is not None:
        mask, causal = _mask(build, given["attn_mask"], [*lead, length, keys])
    y = _result(build, node)
    results = Value(y.buffer, y.view.view(*rows[0].shape[:2], length, out))
    reads = [*rows, *([] if mask is None else [mask])]

    def step(at: memory.Address) -> str:
        operands = [f"{_heads(each)}{{{at(each)}}}" for each in rows]
        added = "NoMask" if mask is None else f"Repeated<{mask.shape[0]}, {_matrices(mask)}>"
        operands.append(f"{added}{{{'' if mask is None else at(mask)}}}")
        operands.append(f"{_heads(results, 'float')}{{{at(results)}}}")
        sizes = f"{length}, {keys}, {width}, {out}, {group}, {'true' if causal else 'false'}"
        more = f"{math.prod(lead)}, {number(factor)}, team"
        return f"Attention<{sizes}>::run({', '.join(operands)}, {more});"

    return build.step(step, reads, y, module_name(node))


def _expanded(value: Value, shape: list[int]) -> Value:
    return Value(value.buffer, value.view.expand(shape))


def _matrices(value: Value) -> str:
    """The type of an operand of the runtime's products, of the shape [matrices, rows, columns]."""
    matrix, row, column = value.view.stride()
    strides = [matrix, row] if column == 1 or value.shape[2] == 1 else [matrix, row, column]
    return f"Matrices<{', '.join(map(str, strides))}>"


def _result(build: Builder, node: fx.Node) -> Value:
    """The result of attention: rows of all heads side by side where they are joined next."""
    shape, user = list(node.meta["val"].shape), only_user(node)
    y = build.program.new(shape)
    if len(shape) < 4 or user is None or user.target not in _EXCHANGES:
        return y
    *lead, heads, length, width = shape
    return Value(y.buffer, y.view.view(*lead, length, heads, width).transpose(-3, -2))


def _of_heads(build: Builder, value: Value, lead: list[int]) -> Value:
    """A tensor of these heads, in four dimensions, each of which has a stride."""
    outer = [math.prod(lead[:-1]), lead[-1]] if lead else [1, 1]
    found = _expanded(value, [*lead, *value.shape[-2:]])
    return _with_rows(build, build.reshaped(found, [*outer, *value.shape[-2:]]))


def _heads(value: Value, element: str = "const float") -> str:
    """The type of an operand of attention."""
    outer, head, row, _ = value.view.stride()
    return f"Heads<{element}, {value.shape[1]}, {outer}, {head}, {row}>"


def _rows(build: Builder, value: Value) -> Value:
    """A tensor of three dimensions: those before the last two are one."""
    return _with_rows(build, build.reshaped(value, [-1, *value.shape[-2:]]))


def _with_rows(build: Builder, value: Value) -> Value:
    """The tensor, or a copy, with elements of a row side by side."""
    aside = value.view.stride(-1) != 1 and value.shape[-1] > 1
    return build.contiguous(value) if aside else value


def _mask(build: Builder, node: fx.Node, shape: list[int]) -> tuple[Value | None, bool]:
    """What is added to the scores, as rows, for the first of the heads, and then again for others.

    Or that each row is kept from later keys.
    """
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
    # What is the same for all of the outer dimensions is repeated for them, and not copied.
    own = [*[1] * (len(shape) - mask.view.dim()), *mask.shape]
    outer = next((d for d, size in enumerate(own[:-2]) if size > 1), len(own) - 2)
    inner = Value(mask.buffer, mask.view.expand(own)[(0,) * outer])
    return _rows(build, _expanded(inner, shape[outer:])), False


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
    a = _expanded(a, [*lead, rows, terms])
    count = math.prod(lead)
    if math.prod(b.shape[:-2]) == 1:  # the same for all
        rows, count = rows * count, 1
    else:
        b = _expanded(b, [*lead, terms, columns])
    a, b = (build.reshaped(v, [count, -1, v.shape[-1]]) for v in (a, b))
    if 1 not in (terms, columns, *b.view.stride()[1:]):
        b = build.contiguous(b)
    sizes = f"{rows}, {terms}, {columns}"

    def step(at: memory.Address) -> str:
        operands = ", ".join(f"{_matrices(each)}{{{at(each)}}}" for each in (a, b))
        return f"product<{sizes}>({operands}, {at(y)}, {count}, team);"

    return build.step(step, [a, b], y, module_name(node))
