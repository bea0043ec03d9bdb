"""How much a network loses by a candidate in one slot, and by two of them together.

The distance of the outputs from those of the original network needs no labels and is 0 for the
original, so that few batches give it precisely. Fit errors are comparable within a slot: the score
of a slot's candidate is the mean of its distance, and of its fit error times the sensitivity of the
slot, which is the regression of the distances on the errors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from syno.adaptation.pipeline.assembly import assembled
from syno.adaptation.pipeline.journal import Journal
from syno.adaptation.pipeline.kinds import Kind
from syno.adaptation.pipeline.pool import ORIGINAL, Candidate
from syno.adaptation.pipeline.screening import Entry, Fits, best_fronts
from syno.adaptation.pipeline.subject import Subject
from syno.options import AdaptOptions

# So many candidates of a slot are measured on more samples, and with so many times as many.
_FINALISTS, _MORE = 3, 4
# All pairs of slots are measured up to this number of pairs; of more, those of neighbours.
_MOST_PAIRS = 30

Progress = Callable[[int, int, str], None]


def one_slot(
    subject: Subject,
    kinds: Mapping[str, Kind],
    entries: Mapping[str, Sequence[Entry]],
    errors: Mapping[str, Mapping[str, float]],
    fits: Fits,
    options: AdaptOptions,
    journal: Journal,
    progress: Progress,
) -> dict[str, dict[str, float]]:
    """Scores by slot and name of the candidate, lower is better, 0 of the original."""
    scores: dict[str, dict[str, float]] = {}
    total = sum(len(kind.slots) for kind in kinds.values())
    for kind in kinds.values():
        for slot in kind.slots:
            progress(len(scores), total, slot)

            def measure(slot: str = slot, kind: Kind = kind) -> dict[str, float]:
                return _distances(subject, kinds, entries[kind.name], slot, fits, options)

            found = errors[slot]
            if options.score == "fit":
                scores[slot] = dict(found)
                continue
            distances = journal.once("scores", slot, measure)
            scores[slot] = combined(distances, found, options.score)
    progress(total, total, "")
    return scores


def combined(
    distances: Mapping[str, float], errors: Mapping[str, float], how: str
) -> dict[str, float]:
    """The scores of a slot from distances and fit errors of its candidates.

    how: `distance` for the distances alone, or `both`.
    """
    if how == "distance":
        return dict(distances)
    energy = sum(errors[name] ** 2 for name in distances)
    sensitivity = sum(distances[name] * errors[name] for name in distances) / max(energy, 1e-30)
    return {
        name: 0.5 * (distances[name] + max(sensitivity, 0.0) * errors[name]) for name in distances
    }


def pairs(
    subject: Subject,
    kinds: Mapping[str, Kind],
    entries: Mapping[str, Sequence[Entry]],
    scores: Mapping[str, Mapping[str, float]],
    fits: Fits,
    options: AdaptOptions,
    journal: Journal,
    progress: Progress,
) -> dict[tuple[str, str], float]:
    """How much errors of two slots add up, from 0 to 1.

    Errors add up like vectors: the distance of both is a + b + 2 c sqrt(a b), where a and b are
    those of one. c is measured with one candidate in each slot, of the middle latency. Less than
    the sum says that the outputs are wrong already, and counts as independence.
    """
    names = list(scores)
    chosen = list(itertools.combinations(names, 2))
    if len(chosen) > _MOST_PAIRS:
        chosen = list(itertools.pairwise(names))
    middle = {
        slot: _middle([e.candidate for e in entries[kind.name] if e.candidate.is_operator])
        for kind in kinds.values()
        for slot in kind.slots
    }
    found: dict[tuple[str, str], float] = {}
    for place, (first, second) in enumerate(chosen):
        progress(place, len(chosen), f"{first} and {second}")
        a, b = middle[first], middle[second]
        if a is None or b is None:
            continue

        def measure(
            both: dict[str, Candidate] = {first: a, second: b},  # noqa: B006
        ) -> list[float]:
            parts = [{slot: candidate} for slot, candidate in both.items()]
            return [
                subject.quality(
                    assembled(subject, kinds, choice, fits), options.score_images
                ).divergence
                for choice in (*parts, both)
            ]

        one, other, together = journal.once("pairs", f"{first} {second}", measure)
        scale = 2.0 * math.sqrt(max(one, 0.0) * max(other, 0.0))
        if scale > 0.0:
            found[first, second] = min(max((together - one - other) / scale, 0.0), 1.0)
    progress(len(chosen), len(chosen), "")
    return found


def interactions(
    dependence: Mapping[tuple[str, str], float],
    scores: Mapping[str, Sequence[float]],
) -> dict[tuple[int, int], list[list[float]]]:
    """The further scores of two candidates together: 2 c sqrt(a b), by the numbers of slots."""
    place = {slot: number for number, slot in enumerate(scores)}
    return {
        (place[first], place[second]): [
            [2.0 * c * math.sqrt(max(a, 0.0) * max(b, 0.0)) for b in scores[second]]
            for a in scores[first]
        ]
        for (first, second), c in dependence.items()
    }


def _distances(
    subject: Subject,
    kinds: Mapping[str, Kind],
    entries: Sequence[Entry],
    slot: str,
    fits: Fits,
    options: AdaptOptions,
) -> dict[str, float]:
    """Distances of the network with one slot replaced: on few samples, of the best on more."""
    found = {ORIGINAL: 0.0}
    others = [each for each in entries if each.candidate.name != ORIGINAL]
    nets = {}
    for each in others:
        name = each.candidate.name
        nets[name] = assembled(subject, kinds, {slot: each.candidate}, fits)
        found[name] = subject.quality(nets[name], options.score_images).divergence
    points = [(each.latency_ms, found[each.candidate.name]) for each in others]
    for place in best_fronts(points, _FINALISTS):
        name = others[place].candidate.name
        found[name] = subject.quality(nets[name], _MORE * options.score_images).divergence
    return found


def _middle(candidates: Sequence[Candidate]) -> Candidate | None:
    return candidates[len(candidates) // 2] if candidates else None
