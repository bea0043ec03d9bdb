"""Which candidate stands in which slot: integer programs over scores and costs.

With x[s, c] = 1 where candidate c stands in slot s:

    minimize    sum of score[s, c] * x[s, c]
    subject to  sum over c of x[s, c] = 1                       for every slot s
                sum of cost[k, s, c] * x[s, c] <= limit[k]      for every resource k

The program is solved by HiGHS through scipy.optimize.milp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syno._util.errors import UserError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Assignment:
    """choice: the candidate of each slot. score: the sum of their scores. costs: by resource."""

    choice: tuple[int, ...]
    score: float
    costs: Mapping[str, float]


class Choices:
    """The candidates of all slots, with their scores and costs.

    Args:
        scores: for each slot, the score of each candidate; lower is better.
        costs: for each resource, and each slot, the cost of each candidate, not negative.

    Raises:
        UserError: there are no slots, a slot has no candidates, lengths differ, a score or cost is
            not a finite number, or a cost is negative.
    """

    def __init__(
        self, scores: Sequence[Sequence[float]], costs: Mapping[str, Sequence[Sequence[float]]]
    ) -> None:
        self.counts = [len(of_slot) for of_slot in scores]
        if not self.counts or min(self.counts) == 0:
            raise UserError("every slot needs at least one candidate, and there must be a slot")
        self.scores = _joined("scores", scores, self.counts)
        self.costs = {name: _joined(name, cost, self.counts) for name, cost in costs.items()}
        for name, cost in self.costs.items():
            if float(cost.min()) < 0.0:
                raise UserError(f"the costs '{name}' are not negative, got {float(cost.min()):g}")
        self._ends = np.cumsum(self.counts)

    def assignment(self, choice: Sequence[int]) -> Assignment:
        """The score and costs of one candidate in each slot."""
        places = self._ends - np.array(self.counts) + np.array(choice)
        costs = {name: float(cost[places].sum()) for name, cost in self.costs.items()}
        return Assignment(tuple(int(c) for c in choice), float(self.scores[places].sum()), costs)

    def cheapest(self, resource: str) -> Assignment:
        """The assignment of the least cost."""
        return self._solved(self._cost(resource), {}, ())

    def best(
        self, limits: Mapping[str, float], *, other_than: Sequence[Sequence[int]] = ()
    ) -> Assignment:
        """The assignment of the least score within the limits.

        Args:
            limits: the largest cost of each named resource.
            other_than: choices that are not wanted, for the second best and so on.

        Raises:
            UserError: nothing keeps the limits; the message says what the least possible cost is.
        """
        for name in limits:
            self._cost(name)
        return self._solved(self.scores, limits, other_than)

    def several(self, limits: Mapping[str, float], count: int) -> list[Assignment]:
        """The `count` best assignments within the limits, or all of them if there are fewer."""
        found = [self.best(limits)]
        while len(found) < count:
            try:
                found.append(self.best(limits, other_than=[one.choice for one in found]))
            except UserError:
                break
        return found

    def front(self, resource: str, limits: Sequence[float]) -> list[Assignment]:
        """The best assignment for each limit of one resource that can be kept, without repeats."""
        least = self.cheapest(resource).costs[resource]
        found: dict[tuple[int, ...], Assignment] = {}
        for limit in sorted(limits, reverse=True):
            if limit >= least:
                one = self.best({resource: limit})
                found.setdefault(one.choice, one)
        return list(found.values())

    def _cost(self, name: str) -> Floats:
        if name not in self.costs:
            raise UserError(
                f"there are no costs '{name}'\n  expected: one of {', '.join(self.costs) or 'none'}"
            )
        return self.costs[name]

    def _solved(
        self,
        objective: Floats,
        limits: Mapping[str, float],
        other_than: Sequence[Sequence[int]],
    ) -> Assignment:
        from scipy.optimize import Bounds, LinearConstraint, milp

        total = int(self._ends[-1])
        starts = self._ends - np.array(self.counts)
        one_each = np.zeros((len(self.counts), total))
        for slot, (start, end) in enumerate(zip(starts, self._ends, strict=True)):
            one_each[slot, start:end] = 1.0
        constraints = [LinearConstraint(one_each, 1.0, 1.0)]
        for name, limit in limits.items():
            # Costs in shares of the limit, so that the solver's tolerance does not depend on units.
            scale = limit if limit > 0.0 else 1.0
            constraints.append(LinearConstraint(self.costs[name] / scale, -np.inf, limit / scale))
        for choice in other_than:
            row = np.zeros(total)
            row[starts + np.array(choice)] = 1.0
            constraints.append(LinearConstraint(row, -np.inf, len(self.counts) - 1))
        spread = float(np.abs(objective).max()) or 1.0
        result = milp(
            objective / spread,
            integrality=np.ones(total),
            bounds=Bounds(0, 1),
            constraints=constraints,
        )
        if result.x is None:
            raise UserError(self._nothing(limits, bool(other_than), str(result.message)))
        return self.assignment(
            [
                int(np.argmax(result.x[start:end]))
                for start, end in zip(starts, self._ends, strict=True)
            ]
        )

    def _nothing(self, limits: Mapping[str, float], excluded: bool, message: str) -> str:
        for name, limit in limits.items():
            least = self.cheapest(name).costs[name]
            if least > limit:
                return (
                    f"no assignment has {name} of at most {limit:g}\n"
                    f"  expected: at least {least:g}, the least that the candidates allow"
                )
        if excluded:
            return "there is no other assignment within the limits"
        together = ", ".join(f"{name} <= {limit:g}" for name, limit in limits.items())
        return f"no assignment keeps all limits together: {together} ({message})"


def _joined(name: str, parts: Sequence[Sequence[float]], counts: Sequence[int]) -> Floats:
    if [len(part) for part in parts] != list(counts):
        raise UserError(
            f"'{name}' has {[len(part) for part in parts]} values for the slots\n"
            f"  expected: {list(counts)}, one for each candidate"
        )
    joined = np.array([value for part in parts for value in part], dtype=np.float64)
    if not all(math.isfinite(value) for value in joined):
        raise UserError(f"'{name}' are finite numbers, got {joined[~np.isfinite(joined)][0]}")
    return joined
