"""Operators of PyTorch in whose place a traced network has several simpler ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, fx

from syno._util.errors import UserError
from syno.inference.node_arguments import NodeArguments

_aten = torch.ops.aten
Table = dict[Any, Callable[..., object]]
Replacement = TypeVar("Replacement", bound=Callable[..., object])

# What takes the place of each operator, as `ExportedProgram.run_decompositions` reads it.
SIMPLER: Table = {}


def _of(*names: str) -> Callable[[Replacement], Replacement]:
    """Decorator of what takes the place of these operators of ATen."""

    def register(function: Replacement) -> Replacement:
        for name in names:
            packet, _, overload = name.partition(".")
            SIMPLER[getattr(getattr(_aten, packet), overload or "default")] = function
        return function

    return register


# --- other names ---------------------------------------------------------------------------------

for _other, _known in {
    "absolute": "abs",
    "negative": "neg",
    "fix": "trunc",
    "multiply": "mul",
    "divide": "div",
    "true_divide": "div",
    "subtract": "sub",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
}.items():
    for _overload in getattr(_aten, _other).overloads():
        if _overload in ("default", "Tensor", "Scalar"):
            _name = f"{_other}.{_overload}"
            _of(_name)(getattr(getattr(_aten, _known), _overload))


@_of("tile")
def _tile(x: Tensor, dims: Sequence[int]) -> Tensor:
    return x.repeat([*[1] * (x.dim() - len(dims)), *dims])


@_of("var_mean", "var_mean.dim", "var_mean.correction")
def _var_mean(x: Tensor, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
    return torch.var(x, *args, **options), _mean_beside(x, *args, **options)


@_of("std_mean", "std_mean.dim", "std_mean.correction")
def _std_mean(x: Tensor, *args: Any, **options: Any) -> tuple[Tensor, Tensor]:
    return torch.std(x, *args, **options), _mean_beside(x, *args, **options)


def _mean_beside(
    x: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False, **options: Any
) -> Tensor:
    """The mean over what a variance is of."""
    if dim is None or isinstance(dim, bool):  # all of it
        dim = list(range(x.dim()))
    return x.mean(dim, keepdim=keepdim)


@_of("norm.ScalarOpt_dim")
def _norm(x: Tensor, p: float | None, dim: list[int], keepdim: bool = False) -> Tensor:
    return torch.linalg.vector_norm(x, 2 if p is None else p, dim or None, keepdim)


@_of("logsumexp")
def _logsumexp(x: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    top = x.amax(dim, keepdim=True)
    top = torch.where(top.abs() == torch.inf, 0.0, top)
    found = (x - top).exp().sum(dim, keepdim=True).log() + top
    return found if keepdim else found.squeeze(dim)


# --- tensors that say nothing of another one ------------------------------------------------------


def _new(
    make: Callable[..., Tensor], x: Tensor, size: Sequence[int], *value: Any, **options: Any
) -> Tensor:
    """A constant where its sizes are fixed, whatever `x` is."""
    return make(size, *value, dtype=options.get("dtype") or x.dtype, device=x.device)


_NEW: dict[str, Callable[..., Tensor]] = {
    "new_zeros": torch.zeros,
    "new_ones": torch.ones,
    "new_full": torch.full,
}
for _name, _make in _NEW.items():
    _of(_name)(functools.partial(_new, _make))


# --- products ------------------------------------------------------------------------------------

# The names of the dimensions that "..." stands for.
_DOTS = "0123456789"
# A tensor with the name of each dimension.
_Named = tuple[str, Tensor]


@_of("einsum")
def _einsum(equation: str, tensors: Sequence[Tensor], *, path: object = None) -> Tensor:
    """One product after the other; `path` gives another order of the same sum."""
    inside, arrow, outside = equation.replace(" ", "").partition("->")
    parts = inside.split(",")
    dots = [x.dim() - len(part.replace("...", "")) for part, x in zip(parts, tensors, strict=True)]
    most = max(dots) if "..." in inside else 0
    names = [p.replace("...", _DOTS[most - n : most]) for p, n in zip(parts, dots, strict=True)]
    kept = outside.replace("...", _DOTS[:most])
    if not arrow:
        every = "".join(names)
        once = sorted(name for name in set(every) - set(_DOTS) if every.count(name) == 1)
        kept = _DOTS[:most] + "".join(once)
    named = [_without_twins(*each) for each in zip(names, tensors, strict=True)]
    found = named[0]
    for number, other in enumerate(named[1:], 1):
        later = set(kept).union(*names[number + 1 :])
        found = _product(found, other, later)
    letters, value = _summed(found, set(kept))
    return value.permute([letters.index(name) for name in kept])


def _without_twins(names: str, x: Tensor) -> _Named:
    """Dimensions of one name as their diagonal."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first, second = names.index(name), names.rindex(name)
            x = x.diagonal(dim1=first, dim2=second)
            names = names[:first] + names[first + 1 : second] + names[second + 1 :] + name
    return names, x


def _summed(found: _Named, kept: set[str]) -> _Named:
    """Without the dimensions of other names, whose elements are added up."""
    names, x = found
    gone = [d for d, name in enumerate(names) if name not in kept]
    return "".join(n for n in names if n in kept), x.sum(gone) if gone else x


def _product(one: _Named, other: _Named, later: set[str]) -> _Named:
    """The product of two tensors, summed over the names that both have and nothing needs later."""
    (names, x), (more, y) = (
        _summed(each, later | set(beside[0])) for each, beside in ((one, other), (other, one))
    )
    for name in set(names) & set(more):  # a size of one is for all
        a, b = names.index(name), more.index(name)
        if x.shape[a] != y.shape[b]:
            size = max(x.shape[a], y.shape[b])
            x = x.expand([size if d == a else n for d, n in enumerate(x.shape)])
            y = y.expand([size if d == b else n for d, n in enumerate(y.shape)])
    batch = [n for n in names if n in more and n in later]
    terms = [n for n in names if n in more and n not in later]
    rows, columns = [n for n in names if n not in more], [n for n in more if n not in names]
    sizes = dict(zip(more, y.shape, strict=True)) | dict(zip(names, x.shape, strict=True))

    def ordered(x: Tensor, names: str, *groups: list[str]) -> Tensor:
        """The batch, and then each group as one dimension."""
        x = x.permute([names.index(n) for n in [*batch, *(n for group in groups for n in group)]])
        for place, group in enumerate(groups, len(batch)):
            if not group:
                x = x.unsqueeze(place)
            elif len(group) > 1:
                x = x.flatten(place, place + len(group) - 1)
        return x

    left, right = ordered(x, names, rows, terms), ordered(y, more, terms, columns)
    found = left @ right if terms else left * right
    order = [*batch, *rows, *columns]
    return "".join(order), found.reshape([sizes[name] for name in order])


# --- recurrent layers ----------------------------------------------------------------------------

# Of a row for each sample, the states before, and the weights of the states: the states after.
_Cell = Callable[..., tuple[Tensor, ...]]
_linear = torch.nn.functional.linear


def _lstm_cell(
    row: Tensor, states: Sequence[Tensor], weight: Tensor, bias: Tensor | None, *last: Tensor
) -> tuple[Tensor, ...]:
    gates = (row + _linear(states[0], weight, bias)).chunk(4, -1)
    inside, forget, cell, out = gates
    c = forget.sigmoid() * states[1] + inside.sigmoid() * cell.tanh()
    h = out.sigmoid() * c.tanh()
    return (_linear(h, last[0]) if last else h), c


def _gru_cell(
    row: Tensor, states: Sequence[Tensor], weight: Tensor, bias: Tensor | None
) -> tuple[Tensor, ...]:
    (h,) = states
    reset, update, new = row.chunk(3, -1)
    of_reset, of_update, of_new = _linear(h, weight, bias).chunk(3, -1)
    n = (new + (reset + of_reset).sigmoid() * of_new).tanh()
    return ((h - n) * (update + of_update).sigmoid() + n,)


def _rnn_cell(activation: Callable[[Tensor], Tensor]) -> _Cell:
    def cell(
        row: Tensor, states: Sequence[Tensor], weight: Tensor, bias: Tensor | None
    ) -> tuple[Tensor, ...]:
        return (activation(row + _linear(states[0], weight, bias)),)

    return cell


_CELLS: dict[str, _Cell] = {
    "lstm": _lstm_cell,
    "gru": _gru_cell,
    "rnn_tanh": _rnn_cell(torch.tanh),
    "rnn_relu": _rnn_cell(torch.relu),
}


def _recurrent(cell: _Cell) -> Callable[..., tuple[Tensor, ...]]:
    """A recurrent layer as a product for all of its inputs, and the cell for one after another."""

    def layer(
        x: Tensor,
        start: Tensor | Sequence[Tensor],
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Tensor, ...]:
        states = [start] if isinstance(start, Tensor) else list(start)
        directions = 2 if bidirectional else 1
        size = len(params) // (num_layers * directions)
        x = x.transpose(0, 1) if batch_first else x
        ends = []
        for number in range(num_layers):
            found = []
            for direction in range(directions):
                place = number * directions + direction
                own = params[place * size : (place + 1) * size]
                y, end = _run(cell, x, [each[place] for each in states], own, has_biases, direction)
                found.append(y)
                ends.append(end)
            x = torch.cat(found, -1)
            if number < num_layers - 1:
                x = torch.nn.functional.dropout(x, dropout, train)
        x = x.transpose(0, 1) if batch_first else x
        return x, *(torch.stack(each) for each in zip(*ends, strict=True))

    return layer


def _run(
    cell: _Cell,
    x: Tensor,
    states: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    backward: int,
) -> tuple[Tensor, Sequence[Tensor]]:
    """All hidden states [T, N, H] of one direction of a layer, and the states at its end."""
    of_input, of_state, *rest = params
    biases, last = (rest[:2], rest[2:]) if has_biases else ([None, None], rest)
    rows = list(_linear(x, of_input, biases[0]).unbind(0))
    found = []
    for row in reversed(rows) if backward else rows:
        states = cell(row, states, of_state, biases[1], *last)
        found.append(states[0])
    return torch.stack(found[::-1] if backward else found), states


def _one_step(cell: _Cell) -> Callable[..., object]:
    def step(
        x: Tensor,
        start: Tensor | Sequence[Tensor],
        of_input: Tensor,
        of_state: Tensor,
        of_input_bias: Tensor | None = None,
        of_state_bias: Tensor | None = None,
    ) -> Tensor | Sequence[Tensor]:
        states = [start] if isinstance(start, Tensor) else list(start)
        found = cell(_linear(x, of_input, of_input_bias), states, of_state, of_state_bias)
        return found if len(found) > 1 else found[0]

    return step


_LAYERS: Table = {getattr(_aten, name).input: _recurrent(cell) for name, cell in _CELLS.items()}
# Recurrent layers as loops: for a program, which has no calls of PyTorch between the steps.
LOOPS: Table = _LAYERS | {
    getattr(_aten, f"{name}_cell").default: _one_step(cell) for name, cell in _CELLS.items()
}
# Each step of a recurrent layer is a dozen of operators, which take a tenth of a second to trace.
_MOST_STEPS = 512


def check_steps(graph: fx.Graph) -> None:
    """UserError for recurrent layers whose steps are too many to be a loop, or not fixed."""
    steps = sum(_steps(node) for node in graph.nodes if node.target in _LAYERS)
    if steps > _MOST_STEPS:
        raise UserError(
            f"the recurrent layers of the network have {steps} steps\n"
            f"  expected: at most {_MOST_STEPS} in the network library\n"
            "  what to do: use syno.compile, where they stay PyTorch, or give shorter sequences"
        )


def _steps(node: fx.Node) -> int:
    """How often the cells of a recurrent layer are computed; torch fixes that as it traces it."""
    given = NodeArguments(node)
    length = given["input"].meta["val"].shape[1 if given["batch_first"] else 0]
    return int(length) * int(given["num_layers"]) * (2 if given["bidirectional"] else 1)
