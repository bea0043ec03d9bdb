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
# The sizes of another binding.
_EXTENTS = (1, 2, 3, 4, 6, 7)
_CONVOLUTIONS = 0.25
_REBOUND = 0.3
_MOST_TRIALS = 30


@dataclass(frozen=True)
class RandomCase:
    """The case of a seed; convolution: whether it was made to resemble a convolution."""

    seed: int
    case: Case
    convolution: bool


def random_case(seed: int, max_terms: int = MAX_TERMS) -> RandomCase:
    """Return the random case of a seed, which is the same on every machine.

    A quarter of the cases resemble convolutions (`random_convolution`). The others are graphs
    whose steps are random; some have a batch dimension, causal windows, or at least one, two or
    three weights. Three in ten cases have another binding, in which windows are often wider than
    the extent that they slide over.
    """
    rng = random.Random(seed)
    convolution = rng.random() < _CONVOLUTIONS
    case = _convolution(rng, max_terms) if convolution else _graph(rng, max_terms)
    if rng.random() < _REBOUND:
        case = _rebound(case, rng, max_terms)
    return RandomCase(seed, case, convolution)


def _graph(rng: random.Random, max_terms: int) -> Case:
    core, binding = _core.random_operator(
        rng.getrandbits(48),
        batch=rng.random() < 1 / 3,
        causal_windows=0.5 if rng.random() < 0.2 else 0.0,
        min_weights=rng.choice((0, 0, 1, 1, 1, 2, 2, 3)),
        max_terms=max_terms,
    )
    operator = Operator(core)
    return Case(operator, {name: binding[name] for name in operator.variables})


def _convolution(rng: random.Random, max_terms: int) -> Case:
    for _ in range(_MOST_TRIALS):
        text, binding = random_convolution(rng)
        operator = Operator.from_text(text)
        if operator.term_count(binding) <= max_terms:
            return Case(operator, {name: binding[name] for name in operator.variables})
    return _graph(rng, max_terms)


def _rebound(case: Case, rng: random.Random, max_terms: int) -> Case:
    """The operator under another binding; the same case if no random binding is legal."""
    for _ in range(_MOST_TRIALS):
        binding = {name: rng.choice(_EXTENTS) for name in case.operator.variables}
        if is_legal(case.operator, binding, max_terms):
            return Case(case.operator, binding)
    return case


def is_legal(operator: Operator, binding: dict[str, int], max_terms: int = MAX_TERMS) -> bool:
    """Return whether every size is a positive integer, and data and terms are small."""
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
