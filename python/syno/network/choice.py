"""Which candidate stands in which slot: integer programs over scores and costs.

With x[s, c] = 1 where candidate c stands in slot s:

    minimize    sum of score[s, c] * x[s, c]
    subject to  sum over c of x[s, c] = 1                       for every slot s
                sum of cost[k, s, c] * x[s, c] <= limit[k]      for every resource k

Two slots s and t that depend on each other have a further score of each pair of candidates. With
z[c, d] for the product x[s, c] * x[t, d], of which no other values are possible under

                sum over d of z[c, d] = x[s, c],    sum over c of z[c, d] = x[t, d],    z >= 0

it stays a linear program. Costs of pairs are written alike. Slots that exclude each other, of which
one at least has its first candidate, are a further row. It is solved by HiGHS through
scipy.optimize.milp.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syno._util.errors import UserError
from syno._util.silence import prints_on_stderr

Floats = NDArray[np.float64]
Pair = tuple[int, int]


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
        pairs: for some pairs (s, t) of slots by number, the score of candidates c and d together,
            [c][d], which is added to their own.
        shared: for some resources, and pairs of slots, the cost of candidates together, which is
            added to their own; it may be negative.
        exclusive: pairs of slots, of which one at least has its first candidate.

    Raises:
        UserError: there are no slots, a slot has no candidates, lengths differ, a score or cost is
            not a finite number, or a cost is negative.
    """

    def __init__(
        self,
        scores: Sequence[Sequence[float]],
        costs: Mapping[str, Sequence[Sequence[float]]],
        pairs: Mapping[Pair, Sequence[Sequence[float]]] | None = None,
        *,
        shared: Mapping[str, Mapping[Pair, Sequence[Sequence[float]]]] | None = None,
        exclusive: Sequence[Pair] = (),
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
        self.pairs = {
            slots: self._checked_pair("scores", slots, values)
            for slots, values in (pairs or {}).items()
        }
        self.shared = {
            name: {
                slots: self._checked_pair(f"costs '{name}'", slots, values)
                for slots, values in of.items()
            }
            for name, of in (shared or {}).items()
        }
        for name in self.shared:
            self._cost(name)
        self.exclusive = tuple(exclusive)

    def assignment(self, choice: Sequence[int]) -> Assignment:
        """The score and costs of one candidate in each slot."""
        places = self._ends - np.array(self.counts) + np.array(choice)

        def together(pairs: Mapping[Pair, Floats]) -> float:
            return sum(float(of[choice[s], choice[t]]) for (s, t), of in pairs.items())

        costs = {
            name: float(cost[places].sum()) + together(self.shared.get(name, {}))
            for name, cost in self.costs.items()
        }
        score = float(self.scores[places].sum()) + together(self.pairs)
        return Assignment(tuple(int(c) for c in choice), score, costs)

    def cheapest(self, resource: str, limits: Mapping[str, float] | None = None) -> Assignment:
        """The assignment of the least cost, within limits on other resources if there are any.

        UserError when nothing keeps the limits.
        """
        own = self._cost(resource)
        return self._solved(own, self.shared.get(resource, {}), limits or {}, ())

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
        return self._solved(self.scores, self.pairs, limits, other_than)

    def several(
        self,
        limits: Mapping[str, float],
        count: int,
        *,
        other_than: Sequence[Sequence[int]] = (),
    ) -> list[Assignment]:
        """The `count` best assignments within the limits, or all of them if there are fewer.

        Args:
            limits, other_than: as in `best`. With `other_than`, there may be no further assignment.

        Raises:
            UserError: as `best`, without `other_than`.
        """
        found: list[Assignment] = []
        while len(found) < count:
            done = [*other_than, *(one.choice for one in found)]
            try:
                found.append(self.best(limits, other_than=done))
            except UserError:
                if not done:
                    raise
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

    def _checked_pair(self, what: str, slots: Pair, given: Sequence[Sequence[float]]) -> Floats:
        first, second = slots
        values = np.array([[float(each) for each in row] for row in given])
        wanted = (self.counts[first], self.counts[second])
        if first == second or values.shape != wanted or not np.isfinite(values).all():
            raise UserError(
                f"the {what} of the slots {first} and {second} together are finite numbers for "
                f"{wanted[0]} x {wanted[1]} candidates, got {' x '.join(map(str, values.shape))}"
            )
        return values

    def _solved(
        self,
        objective: Floats,
        together: Mapping[Pair, Floats],
        limits: Mapping[str, float],
        other_than: Sequence[Sequence[int]],
    ) -> Assignment:
        """The assignment of the least `objective`, of candidates alone and of pairs together."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        own = int(self._ends[-1])
        known = [together, *(self.shared.get(name, {}) for name in limits)]
        pairs = list(dict.fromkeys(slots for of in known for slots in of))
        sizes = [self.counts[s] * self.counts[t] for s, t in pairs]
        total = own + sum(sizes)

        def of_products(values: Mapping[Pair, Floats]) -> Floats:
            return np.concatenate(
                [np.zeros(0)]
                + [
                    values[slots].ravel() if slots in values else np.zeros(size)
                    for slots, size in zip(pairs, sizes, strict=True)
                ]
            )

        objective = np.concatenate([objective, of_products(together)])
        starts = self._ends - np.array(self.counts)
        one_each = np.zeros((len(self.counts), total))
        for slot, (start, end) in enumerate(zip(starts, self._ends, strict=True)):
            one_each[slot, start:end] = 1.0
        constraints = [LinearConstraint(one_each, 1.0, 1.0)]
        for name, limit in limits.items():
            # Costs in shares of the limit, so that the solver's tolerance does not depend on units.
            scale = limit if limit > 0.0 else 1.0
            row = np.concatenate([self.costs[name], of_products(self.shared.get(name, {}))]) / scale
            constraints.append(LinearConstraint(row, -np.inf, limit / scale))
        for choice in other_than:
            row = np.zeros(total)
            row[starts + np.array(choice)] = 1.0
            constraints.append(LinearConstraint(row, -np.inf, len(self.counts) - 1))
        for slots in self.exclusive:
            row = np.zeros(total)
            for slot in slots:
                row[starts[slot] + 1 : self._ends[slot]] = 1.0
            constraints.append(LinearConstraint(row, -np.inf, 1.0))
        at = own
        for (first, second), size in zip(pairs, sizes, strict=True):
            constraints.append(LinearConstraint(self._products(total, at, first, second), 0.0, 0.0))
            at += size
        spread = float(np.abs(objective).max()) or 1.0
        with prints_on_stderr():
            result = milp(
                objective / spread,
                integrality=np.arange(total) < own,
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

    def _products(self, total: int, at: int, first: int, second: int) -> Floats:
        """The rows that make z, from `at` on, the products of the variables of two slots."""
        one, other = self.counts[first], self.counts[second]
        rows = np.zeros((one + other, total))
        for c in range(one):
            rows[c, at + c * other : at + (c + 1) * other] = 1.0
            rows[c, self._ends[first] - one + c] = -1.0
        for d in range(other):
            rows[one + d, at + d : at + one * other : other] = 1.0
            rows[one + d, self._ends[second] - other + d] = -1.0
        return rows

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
