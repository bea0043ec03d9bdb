"""How much a network loses by a candidate in one slot, and by two of them together.

The distance of the outputs from those of the original network needs no labels and is 0 for the
original, so that few batches give it precisely. Fit errors are comparable within a slot: the score
of a slot's candidate is the mean of its distance, and of its fit error times the sensitivity of the
slot, which is the regression of the distances on the errors.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from syno.adaptation.pipeline.assembly import Choice, assembled
from syno.adaptation.pipeline.budget import Budget
from syno.adaptation.pipeline.journal import Scope
from syno.adaptation.pipeline.kinds import Kind, by_slot
from syno.adaptation.pipeline.pool import ORIGINAL, Candidate
from syno.adaptation.pipeline.progress import Progress
from syno.adaptation.pipeline.screening import Fits, ScreenedCandidate, best_for
from syno.adaptation.pipeline.subject import AdaptationSubject
from syno.options import AdaptOptions

# So many candidates of a slot are measured on more samples, and with so many times as many.
_FINALISTS, _MORE = 3, 4
# Samples on which networks are compared at least, however short the time is.
_FEWEST = 32
# The share of the time of the scores for one slot alone; the rest is for pairs.
_ALONE = 0.6
# All pairs of slots are measured up to this number of pairs; of more, those of neighbors.
_MOST_PAIRS = 30


@dataclass(frozen=True)
class Scorer:
    """Compares networks in which some slots have another candidate with the original.

    entries: the candidates of each kind of slot. fits: their weights.
    """

    subject: AdaptationSubject
    kinds: Mapping[str, Kind]
    entries: Mapping[str, Sequence[ScreenedCandidate]]
    fits: Fits
    options: AdaptOptions
    scope: Scope
    budget: Budget

    def one_slot(
        self, errors: Mapping[str, Mapping[str, float]], progress: Progress
    ) -> tuple[dict[str, dict[str, float]], float]:
        """Scores by slot and name of the candidate, lower is better, 0 of the original.

        If time is short, networks are compared on fewer samples, and some by the fit error alone.

        errors: of the fits, by slot and name.

        Returns:
            The scores, and how much the network feels errors: the regression of the distances on
            them.
        """
        if self.options.score == "fit":
            return {slot: dict(found) for slot, found in errors.items()}, 1.0
        networks = sum(map(len, errors.values()))
        count = self.scope.once("score samples", "", lambda: self._samples(networks))
        distances: dict[str, dict[str, float]] = {}
        total = len(errors)
        for slot, kind in by_slot(self.kinds).items():
            progress(len(distances), total, slot)
            over = self.budget.until("scores", _ALONE / (total - _ALONE * len(distances)))
            fitted = [e for e in self.entries[kind.name] if e.candidate.name in errors[slot]]
            measure = functools.partial(self._distances, fitted, slot, count, over)
            distances[slot] = self.scope.once("scores", slot, measure)
        progress(total, total, "")
        usual = _sensitivity(
            [
                (far, errors[slot][name])
                for slot, of in distances.items()
                for name, far in of.items()
            ]
        )
        scores = {
            slot: combined(distances[slot], errors[slot], self.options.score, usual)
            for slot in distances
        }
        return scores, usual or 1.0

    @property
    def samples(self) -> int:
        """On how many samples networks are compared."""
        return int(self.scope.get("score samples", "") or self.options.score_images)

    def pairs(
        self, scores: Mapping[str, Mapping[str, float]], progress: Progress
    ) -> dict[tuple[str, str], float]:
        """How much errors of two slots add up, from 0 to 1.

        Errors add up like vectors: the distance of both is a + b + 2 c sqrt(a b), where a and b are
        those of one. c is measured with one candidate in each slot, of the middle cost. Less than
        the sum says that the outputs are wrong already, and counts as independence. If time is
        short, pairs without a measurement depend on each other as much as the others do in the
        mean.

        scores: by slot and name of the candidate.
        """
        chosen = list(itertools.combinations(scores, 2))
        if len(chosen) > _MOST_PAIRS:
            chosen = list(itertools.pairwise(scores))
        middle = {
            slot: candidate
            for slot, kind in by_slot(self.kinds).items()
            if (candidate := _middle(self.entries[kind.name], scores[slot])) is not None
        }
        over = self.budget.until("scores")
        count = self.samples

        @functools.cache
        def distance(*slots: str) -> float:
            return self._distance({slot: middle[slot] for slot in slots}, count)

        found: dict[tuple[str, str], float] = {}
        missing: list[tuple[str, str]] = []
        for place, (first, second) in enumerate(chosen):
            key = f"{first} {second}"
            progress(place, len(chosen), f"{first} and {second}")
            if first not in middle or second not in middle:
                continue
            if over() and self.scope.get("pairs", key) is None:
                missing.append((first, second))
                continue

            def measure(one: str = first, other: str = second) -> list[float]:
                return [distance(one), distance(other), distance(one, other)]

            one, other, together = self.scope.once("pairs", key, measure)
            scale = 2.0 * math.sqrt(max(one, 0.0) * max(other, 0.0))
            if scale > 0.0:
                found[first, second] = min(max((together - one - other) / scale, 0.0), 1.0)
        progress(len(chosen), len(chosen), "")
        mean = sum(found.values()) / max(len(found), 1)
        return found | dict.fromkeys(missing, mean)

    def _samples(self, networks: int) -> int:
        """On how many samples so many networks are compared: as many as there is time for."""
        count = self.options.score_images
        if not self.budget.limited:
            return count
        # This reads the data, and computes what is compared with.
        self.subject.quality(self.subject.original, count)
        began = time.perf_counter()
        self.subject.quality(self.subject.original, count)
        seconds = time.perf_counter() - began
        share = _ALONE * self.budget.left("scores") / max(2.0 * networks * seconds, 1e-9)
        return min(max(int(share * count), _FEWEST), count)

    def _distances(
        self, entries: Sequence[ScreenedCandidate], slot: str, count: int, over: Callable[[], bool]
    ) -> dict[str, float]:
        """Distances of the network with one slot replaced: on few samples, of the best on more."""
        found = {ORIGINAL: 0.0}
        nets = {}
        others = [each for each in entries if each.candidate.name != ORIGINAL]
        for each in others:
            if over():
                break
            name = each.candidate.name
            nets[name] = self._network({slot: each.candidate})
            found[name] = self.subject.quality(nets[name], count).divergence
        measured = [each for each in others if each.candidate.name in nets]

        def far(entry: ScreenedCandidate) -> float:
            return found[entry.candidate.name]

        for place in best_for(
            measured, ScreenedCandidate.cost, far, self.scope.limited, _FINALISTS
        ):
            if over():
                break
            name = measured[place].candidate.name
            found[name] = self.subject.quality(nets[name], _MORE * count).divergence
        return found

    def _distance(self, choice: Choice, count: int) -> float:
        return self.subject.quality(self._network(choice), count).divergence

    def _network(self, choice: Choice) -> nn.Module:
        return assembled(self.subject, self.kinds, choice, self.fits)


def combined(
    distances: Mapping[str, float], errors: Mapping[str, float], how: str, usual: float = 1.0
) -> dict[str, float]:
    """The scores of a slot from distances and fit errors of its candidates.

    how: `distance` for the distances alone, or `both`. usual: the sensitivity of a slot without
    distances. A candidate without a distance has that which its error lets expect.
    """
    pairs = [(far, errors[name]) for name, far in distances.items()]
    sensitivity = _sensitivity(pairs) if any(error > 0.0 for _, error in pairs) else usual
    expected = {name: sensitivity * error for name, error in errors.items()}
    if how == "distance":
        return {name: distances.get(name, far) for name, far in expected.items()}
    return {name: 0.5 * (distances.get(name, far) + far) for name, far in expected.items()}


def _sensitivity(pairs: Sequence[tuple[float, float]]) -> float:
    """The regression of distances on fit errors, of pairs of both; not negative."""
    energy = sum(error**2 for _, error in pairs)
    return max(sum(far * error for far, error in pairs) / max(energy, 1e-30), 0.0)


def _middle(entries: Sequence[ScreenedCandidate], scores: Mapping[str, float]) -> Candidate | None:
    """The operator of the middle cost, of those with a score; None where there is none."""
    operators = [
        e.candidate for e in entries if e.candidate.is_operator and e.candidate.name in scores
    ]
    return operators[len(operators) // 2] if operators else None
