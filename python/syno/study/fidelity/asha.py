"""Which operators go on: the rule of asynchronous successive halving (Li et al. 2020, ASHA).

A worker that is free looks at the rungs from the top down. Of the n results of a rung the best
floor(n / eta) may go on; the best of them that did not go on yet does. Only where none may, a new
operator starts at the bottom. Nobody waits for a rung to fill.

A result without an accuracy is the worst of its rung: it counts in n and never goes on. What was
refused before it was trained is no result. Equal accuracies stand in the order of asking.

Everything here is a function of the results, so a resumed search goes on as the old one would.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """What training at a rung (from 0) gave: the hold-out accuracy, None for a failure.

    ask: the number of the operator.
    """

    ask: int
    rung: int
    accuracy: float | None


@dataclass(frozen=True)
class Promotion:
    """Operator `ask` goes on to `rung`."""

    ask: int
    rung: int


def ranked(results: Iterable[Result], rung: int) -> list[Result]:
    """The results of a rung, the best first and failures last."""
    found = [result for result in results if result.rung == rung]
    return sorted(found, key=lambda r: (math.inf if r.accuracy is None else -r.accuracy, r.ask))


def due(
    results: Sequence[Result], reached: Mapping[int, int], rungs: int, eta: int
) -> list[Promotion]:
    """The promotions that the results call for, the one to do next first.

    reached: the highest rung that each operator was sent to, by its number.
    """
    found = []
    for rung in reversed(range(rungs - 1)):
        order = ranked(results, rung)
        best = order[: len(order) // eta]
        found += [
            Promotion(result.ask, rung + 1)
            for result in best
            if result.accuracy is not None and reached.get(result.ask, 0) == rung
        ]
    return found


def keeps(results: Sequence[Result], rung: int, most: int, eta: int) -> set[int]:
    """The operators of a rung that may still go on when it has up to `most` results: a rank only
    falls as results come in."""
    order = ranked(results, rung)
    return {r.ask for r in order[: most // eta] if r.accuracy is not None}


def values(results: Sequence[Result], rungs: int) -> dict[int, float]:
    """How good each operator turned out to be, from 0 to 1, as feedback for a search method.

    (r + q) / rungs, where r is the highest rung at which it has an accuracy and q its rank there:
    the share of the other results that it beats, ties by half. Accuracies of two rungs are never
    compared; a higher rung is worth more, because the way there leads over the best of the one
    below. 0 for an operator without an accuracy.
    """
    found: dict[int, float] = {}
    for rung in range(rungs):
        here = [result for result in results if result.rung == rung]
        scores = sorted(r.accuracy for r in here if r.accuracy is not None)
        failures, others = len(here) - len(scores), len(here) - 1
        for result in here:
            if result.accuracy is None:
                found.setdefault(result.ask, 0.0)
                continue
            below = bisect_left(scores, result.accuracy)
            ties = bisect_right(scores, result.accuracy) - below - 1
            share = (failures + below + ties / 2) / others if others else 0.5
            found[result.ask] = (rung + share) / rungs
    return found
