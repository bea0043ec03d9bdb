"""Promotion between rungs by asynchronous successive halving (ASHA, Li et al. 2020).

A free worker examines the rungs from the highest to the lowest. Of the n results of a rung, the
best floor(n / eta) may be promoted, and the worker promotes the best one that is not promoted yet.
If no rung has such a result, the worker starts a new operator at the lowest rung. No worker waits
for a rung to be complete.

A failed training is the worst result of its rung: it counts in n and is never promoted. An operator
that was rejected before training has no result. Equal accuracies are ordered by proposal number.

All functions depend on the results only, so a resumed search makes the same promotions.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RungScore:
    """The result of a training at a rung.

    ask: the number of the proposal.
    rung: the index of the rung, from 0 for the lowest.
    accuracy: the validation accuracy, from 0 to 1; None if the training failed.
    """

    ask: int
    rung: int
    accuracy: float | None


@dataclass(frozen=True)
class Promotion:
    """The promotion of operator `ask` to `rung`."""

    ask: int
    rung: int


def ranked(results: Iterable[RungScore], rung: int) -> list[RungScore]:
    """Sort the results of a rung, the best first and failures last."""
    found = [result for result in results if result.rung == rung]
    return sorted(found, key=lambda r: (math.inf if r.accuracy is None else -r.accuracy, r.ask))


def due(
    results: Sequence[RungScore], reached: Mapping[int, int], rungs: int, eta: int
) -> list[Promotion]:
    """List the promotions that the results allow, the next one first.

    Args:
        results: the results of all rungs.
        reached: for each operator, by its number, the highest rung that it was sent to.
        rungs: the number of rungs.
        eta: the best 1/eta of the results of a rung are promoted.
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


def keeps(results: Sequence[RungScore], rung: int, most: int, eta: int) -> set[int]:
    """Find the operators of a rung that may still be promoted when it has up to `most` results.

    The rank of a result can only fall while further results arrive.
    """
    order = ranked(results, rung)
    return {r.ask for r in order[: most // eta] if r.accuracy is not None}


def values(results: Sequence[RungScore], rungs: int) -> dict[int, float]:
    """Rate each operator from 0 to 1, as feedback for a search method.

    The value is (r + q) / rungs, where r is the highest rung at which the operator has an accuracy
    and q is its rank there: the share of the other results that it beats, with half a point for a
    tie. Accuracies of two rungs are never compared. A higher rung has a higher value, because only
    the best operators of the rung below reach it. An operator without an accuracy has the value 0.
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
