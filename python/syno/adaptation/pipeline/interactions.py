"""What candidates lose together: a linear model, corrected by networks that were assembled.

Errors of slots add up like vectors. With a[s, c] for the score of candidate c in slot s, and C for
how much two slots depend on each other, from 0 (independent) to 1 (their errors are alike),

    loss = sum of a[s, c] + sum over pairs (s, t) of 2 C[s, t] sqrt(a[s, c] a[t, d])

An assembled network says by how much this is wrong. What is missing is divided among the terms by
how uncertain they are: u[s, c], relative to a score, and v[s, t], that is added to C, have normal
distributions around 0, and their most likely values given all networks follow from one linear
system. So the next assignment that is chosen takes into account what was seen.

Scores of operators and of widths come from different estimates: all of the second kind have a
further common error, w.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

# Standard deviations: of a score, of a C, of the common error, and of the distance of an assembled
# network, all but the second relative.
_OF_SCORE, _OF_PAIR, _COMMON, _OF_DISTANCE = 0.2, 0.4, 0.6, 0.05
# Corrected values stay within these: a score stays above 0.
_LEAST_SCORE = -0.8
_PAIR = (-0.5, 1.0)

Choice = tuple[int, ...]


class Interactions:
    """The losses of assignments.

    scores: for each slot, that of each candidate. dependence: C by the numbers of two slots; the
    errors of other pairs are independent. alike: numbers of slots whose scores have a common error.
    """

    def __init__(
        self,
        scores: Sequence[Sequence[float]],
        dependence: Mapping[tuple[int, int], float],
        alike: Sequence[int] = (),
    ) -> None:
        self._measured = [[max(each, 0.0) for each in of] for of in scores]
        self._dependence = dict(dependence)
        self._seen: dict[Choice, float] = {}
        self._of_score: dict[tuple[int, int], float] = {}
        self._of_pair = dict.fromkeys(dependence, 0.0)
        self._alike, self._common = frozenset(alike), 0.0
        # Distances are so many times as large as sums of scores.
        self._scale = 1.0

    def learn(self, choice: Sequence[int], distance: float) -> None:
        """Take an assembled network into account, whose outputs are so far from the original's."""
        self._seen[tuple(choice)] = distance
        self._solve()

    def predicted(self, choice: Sequence[int]) -> float:
        """The distance of a network."""
        alone = sum(of[c] for of, c in zip(self.scores, choice, strict=True))
        both = sum(of[choice[s]][choice[t]] for (s, t), of in self.pairs.items())
        return self._scale * (alone + both)

    @property
    def scores(self) -> list[list[float]]:
        """The corrected scores of each slot."""
        found = []
        for slot, of in enumerate(self._measured):
            common = self._common if slot in self._alike else 0.0
            own = [self._of_score.get((slot, c), 0.0) + common for c in range(len(of))]
            found.append([a * (1.0 + max(u, _LEAST_SCORE)) for a, u in zip(of, own, strict=True)])
        return found

    @property
    def pairs(self) -> dict[tuple[int, int], list[list[float]]]:
        """The corrected scores of two candidates together, beyond their own."""
        found = {}
        for (s, t), measured in self._dependence.items():
            c = min(max(measured + self._of_pair[s, t], _PAIR[0]), _PAIR[1])
            found[s, t] = [
                [2.0 * c * math.sqrt(a * b) for b in self._measured[t]] for a in self._measured[s]
            ]
        return found

    def _solve(self) -> None:
        """The most likely corrections, of all networks that were seen with a distance."""
        self._of_score, self._of_pair = {}, dict.fromkeys(self._dependence, 0.0)
        self._scale, self._common = 1.0, 0.0
        seen = {each: far for each, far in self._seen.items() if far > 0.0}
        plain = {choice: self.predicted(choice) for choice in seen}
        seen = {each: far for each, far in seen.items() if plain[each] > 0.0}
        if not seen:
            return
        self._scale = math.exp(
            sum(math.log(far / plain[each]) for each, far in seen.items()) / len(seen)
        )
        singles = sorted({place for choice in seen for place in enumerate(choice)})
        pairs = list(self._dependence)
        rows, missing = [], []
        for choice, far in seen.items():
            row = [self._measured[s][c] if choice[s] == c else 0.0 for s, c in singles]
            row += [
                2.0 * math.sqrt(self._measured[s][choice[s]] * self._measured[t][choice[t]])
                for s, t in pairs
            ]
            row.append(sum(self._measured[s][choice[s]] for s in self._alike))
            # In shares of the distance, so that each network counts alike.
            weight = self._scale / far
            rows.append([weight * each for each in row])
            missing.append(1.0 - weight * plain[choice])
        matrix = np.array(rows)
        deviations = [_OF_SCORE] * len(singles) + [_OF_PAIR] * len(pairs) + [_COMMON]
        prior = np.array(deviations) ** 2
        spread = matrix * prior
        noise = _OF_DISTANCE**2 * np.eye(len(rows))
        found = spread.T @ np.linalg.solve(matrix @ spread.T + noise, np.array(missing))
        self._of_score = {place: float(each) for place, each in zip(singles, found, strict=False)}
        self._of_pair = {
            pair: float(each) for pair, each in zip(pairs, found[len(singles) : -1], strict=True)
        }
        self._common = float(found[-1])
