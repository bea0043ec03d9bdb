"""Random cases for differential tests: operators of every kind, each under a small binding."""

from __future__ import annotations

import random
from dataclasses import dataclass

from syno import _core
from syno._util.errors import UserError
from syno.codegen.emitters import Case
from syno.codegen.verify.convolutions import random_convolution
from syno.operators.operator import Operator

# Terms of all outputs together: what the interpreter runs through several times for each case.
MAX_TERMS = 5000
# What a binding is drawn from once more.
_EXTENTS = (1, 2, 3, 4, 6, 7)
_CONVOLUTIONS = 0.25
_REBOUND = 0.3
_MOST_TRIALS = 30


@dataclass(frozen=True)
class Drawn:
    """The case of a seed; convolution: whether it was drawn to look like one."""

    seed: int
    case: Case
    convolution: bool


def draw_case(seed: int, max_terms: int = MAX_TERMS) -> Drawn:
    """The case of a seed, the same on every machine.

    A quarter look like convolutions (`random_convolution`); the others are graphs whose steps are
    drawn one by one, some with a batch, with causal windows, with up to three weights at least.
    Three in ten get another binding, in which windows are often wider than what they slide over.
    """
    draw = random.Random(seed)
    convolution = draw.random() < _CONVOLUTIONS
    case = _convolution(draw, max_terms) if convolution else _graph(draw, max_terms)
    if draw.random() < _REBOUND:
        case = _rebound(case, draw, max_terms)
    return Drawn(seed, case, convolution)


def _graph(draw: random.Random, max_terms: int) -> Case:
    core, binding = _core.random_operator(
        draw.getrandbits(48),
        batch=draw.random() < 1 / 3,
        causal_windows=0.5 if draw.random() < 0.2 else 0.0,
        min_weights=draw.choice((0, 0, 1, 1, 1, 2, 2, 3)),
        max_terms=max_terms,
    )
    operator = Operator(core)
    return Case(operator, {name: binding[name] for name in operator.variables})


def _convolution(draw: random.Random, max_terms: int) -> Case:
    for _ in range(_MOST_TRIALS):
        text, binding = random_convolution(draw)
        operator = Operator.from_text(text)
        if operator.term_count(binding) <= max_terms:
            return Case(operator, {name: binding[name] for name in operator.variables})
    return _graph(draw, max_terms)


def _rebound(case: Case, draw: random.Random, max_terms: int) -> Case:
    """The operator under another binding; the same case when none of some draws is legal."""
    for _ in range(_MOST_TRIALS):
        binding = {name: draw.choice(_EXTENTS) for name in case.operator.variables}
        if is_legal(case.operator, binding, max_terms):
            return Case(case.operator, binding)
    return case


def is_legal(operator: Operator, binding: dict[str, int], max_terms: int = MAX_TERMS) -> bool:
    """Whether every size is a positive integer, and data and terms are small."""
    try:
        shapes = operator.shapes(binding)
        # The plan has every size of every step.
        operator.plan(binding)
    except UserError:
        return False
    elements = max(_product(shape) for shape in (shapes.input, shapes.output, *shapes.weights))
    return operator.term_count(binding) <= max_terms and elements <= max_terms


def _product(shape: list[int]) -> int:
    result = 1
    for extent in shape:
        result *= extent
    return result
