"""Operators from mutated texts, and all that can be asked of one."""

from __future__ import annotations

import contextlib
import json
import random
import re

import numpy as np
from tests.audit.mutations import mutated_text
from tests.audit.valid import specification

from syno import Operator, UserError

# Sizes under which everything of an operator is small.
SMALLEST = (2, 3, 1, 4, 2, 6)
MOST_TERMS = 50_000


def _sizes_of(operator: Operator) -> dict[str, int]:
    sizes = dict(zip(operator.variables, SMALLEST * 40, strict=False))
    return {name: 3 if name.startswith("k") else size for name, size in sizes.items()}


def use_operator(operator: Operator) -> None:
    """Every method of an operator, each of which may refuse."""
    sizes = _sizes_of(operator)
    str(operator), repr(operator), hash(operator)
    assert Operator.from_text(operator.text) == operator
    assert Operator.from_json(json.loads(json.dumps(operator.to_json()))) == operator
    for method in (
        lambda: operator.key,
        lambda: operator.batch,
        lambda: operator.primitives(),
        lambda: operator.formula(stages=True),
        lambda: Operator.parse(operator.formula(), sizes=sizes),
        lambda: operator.dot(),
        lambda: operator.shapes(sizes),
        lambda: operator.macs(sizes),
        lambda: operator.params(sizes),
        lambda: operator.plan(sizes),
        lambda: operator.plans(sizes, 3, fold_weights=True),
        lambda: operator.source(sizes),
        lambda: operator.mean_square(sizes),
        lambda: operator.reads_future(sizes, 0, 0),
        lambda: operator.refusals(specification()),
        lambda: operator.with_specification(specification()).key,
        lambda: _interpret(operator, sizes),
        lambda: _emit(operator, sizes),
    ):
        with contextlib.suppress(UserError):
            method()


def _interpret(operator: Operator, sizes: dict[str, int]) -> None:
    shapes = operator.shapes(sizes)
    extents = [shapes.input, *shapes.weights]
    if operator.term_count(sizes) > MOST_TERMS or sum(map(np.prod, extents)) > MOST_TERMS:
        return
    x, *weights = (np.ones([int(n) for n in shape], np.int64) for shape in extents)
    y = operator.interpret(sizes, x, weights)
    operator.gradients(sizes, x, weights, np.ones_like(y))


def _emit(operator: Operator, sizes: dict[str, int]) -> None:
    from syno import _core

    chosen = operator.numbered_plan(sizes)
    for emit in (_core.emit_cpp, _core.emit_tvm, _core.emit_triton):
        emit(chosen, operator.formula())


_PIECES = (
    *("1", "2", "-1", "3", "k", "s", "H", "C_in", "N", "k^2", "s*H", "s^-1*H", "k*s", "C_in*H"),
    *("keep", "drop", "join", "o0", "o1", "o2", "r0", "r1", "c0", "c1", "c2", ": unordered", ""),
    *("split", "merge", "shift", "expand", "unfold", "stride", "reduce", "contract", "match"),
)
_WORD = re.compile(r"[\w^*-]+")


def other_operator(text: str, rng: random.Random) -> str:
    """The text of another operator: words changed until the text can be read."""
    for _ in range(60):
        made = text
        for _ in range(rng.choice((1, 1, 2, 3))):
            lines = made.split("\n")
            at = rng.randrange(1, len(lines))
            if rng.random() < 0.25:
                lines.insert(at, lines[rng.randrange(1, len(lines))])
            else:
                found = list(_WORD.finditer(lines[at]))
                if found:
                    word = rng.choice(found)
                    new = rng.choice(_PIECES)
                    lines[at] = lines[at][: word.start()] + new + lines[at][word.end() :]
            made = "\n".join(lines)
        try:
            if Operator.from_text(made).text != Operator.from_text(text).text:
                return made
        except UserError:
            continue
    return mutated_text(text, rng)
