"""How much a network loses by a candidate in one slot, and by two of them together.

The distance of the outputs from those of the original network needs no labels and is 0 for the
original, so that few batches give it precisely. Fit errors are comparable within a slot: the score
of a slot's candidate is the mean of its distance, and of its fit error times the sensitivity of the
slot, which is the regression of the distances on the errors.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence

from syno.adaptation.pipeline.assembly import assembled
from syno.adaptation.pipeline.budget import Budget
from syno.adaptation.pipeline.journal import Journal
from syno.adaptation.pipeline.kinds import Kind
from syno.adaptation.pipeline.pool import ORIGINAL, Candidate
from syno.adaptation.pipeline.screening import Entry, Fits, best_fronts
from syno.adaptation.pipeline.subject import Subject
from syno.options import AdaptOptions

# So many candidates of a slot are measured on more samples, and with so many times as many.
_FINALISTS, _MORE = 3, 4
# Samples on which networks are compared at least, however short the time is.
_FEWEST = 32
# The share of the time of the scores for one slot alone; the rest is for pairs.
_ALONE = 0.6
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
    budget: Budget,
    progress: Progress,
) -> dict[str, dict[str, float]]:
    """Scores by slot and name of the candidate, lower is better, 0 of the original.

    If time is short, networks are compared on fewer samples, and some by the fit error alone.
    """
    if options.score == "fit":
        return {slot: dict(found) for slot, found in errors.items()}
    count = journal.once(
        "score samples",
        "",
        lambda: _samples(subject, sum(map(len, errors.values())), options, budget),
    )
    distances: dict[str, dict[str, float]] = {}
    total = len(errors)
    for kind in kinds.values():
        for slot in kind.slots:
            progress(len(distances), total, slot)
            over = budget.until("scores", _ALONE / (total - _ALONE * len(distances)))

            def measure(
                slot: str = slot, kind: Kind = kind, over: Callable[[], bool] = over
            ) -> dict[str, float]:
                fitted = [e for e in entries[kind.name] if e.candidate.name in errors[slot]]
                return _distances(subject, kinds, fitted, slot, fits, count, over)

            distances[slot] = journal.once("scores", slot, measure)
    progress(total, total, "")
    usual = _sensitivity(
        [(far, errors[slot][name]) for slot, of in distances.items() for name, far in of.items()]
    )
    return {
        slot: combined(distances[slot], errors[slot], options.score, usual) for slot in distances
    }


def _samples(subject: Subject, networks: int, options: AdaptOptions, budget: Budget) -> int:
    """On how many samples networks are compared: as many as there is time for."""
    count = options.score_images
    if not budget.limited:
        return count
    subject.quality(subject.original, count)  # reads the data, and computes what is compared with
    began = time.perf_counter()
    subject.quality(subject.original, count)
    seconds = time.perf_counter() - began
    share = _ALONE * budget.left("scores") / max(2.0 * networks * seconds, 1e-9)
    return min(max(int(share * count), _FEWEST), count)


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


def pairs(
    subject: Subject,
    kinds: Mapping[str, Kind],
    entries: Mapping[str, Sequence[Entry]],
    scores: Mapping[str, Mapping[str, float]],
    fits: Fits,
    options: AdaptOptions,
    journal: Journal,
    budget: Budget,
    progress: Progress,
) -> dict[tuple[str, str], float]:
    """How much errors of two slots add up, from 0 to 1.

    Errors add up like vectors: the distance of both is a + b + 2 c sqrt(a b), where a and b are
    those of one. c is measured with one candidate in each slot, of the middle latency. Less than
    the sum says that the outputs are wrong already, and counts as independence. If time is short,
    pairs without a measurement depend on each other as much as the others do in the mean.
    """
    names = list(scores)
    chosen = list(itertools.combinations(names, 2))
    if len(chosen) > _MOST_PAIRS:
        chosen = list(itertools.pairwise(names))
    middle = {
        slot: _middle(
            [
                e.candidate
                for e in entries[kind.name]
                if e.candidate.is_operator and e.candidate.name in scores[slot]
            ]
        )
        for kind in kinds.values()
        for slot in kind.slots
    }
    over = budget.until("scores")
    known = journal.get("score samples", "") or options.score_images
    found: dict[tuple[str, str], float] = {}
    missing: list[tuple[str, str]] = []
    for place, (first, second) in enumerate(chosen):
        progress(place, len(chosen), f"{first} and {second}")
        a, b = middle[first], middle[second]
        if a is None or b is None:
            continue
        if over() and journal.get("pairs", f"{first} {second}") is None:
            missing.append((first, second))
            continue

        def measure(
            both: dict[str, Candidate] = {first: a, second: b},  # noqa: B006
        ) -> list[float]:
            parts = [{slot: candidate} for slot, candidate in both.items()]
            return [
                subject.quality(assembled(subject, kinds, choice, fits), known).divergence
                for choice in (*parts, both)
            ]

        one, other, together = journal.once("pairs", f"{first} {second}", measure)
        scale = 2.0 * math.sqrt(max(one, 0.0) * max(other, 0.0))
        if scale > 0.0:
            found[first, second] = min(max((together - one - other) / scale, 0.0), 1.0)
    progress(len(chosen), len(chosen), "")
    mean = sum(found.values()) / max(len(found), 1)
    return found | dict.fromkeys(missing, mean)


def _distances(
    subject: Subject,
    kinds: Mapping[str, Kind],
    entries: Sequence[Entry],
    slot: str,
    fits: Fits,
    count: int,
    over: Callable[[], bool],
) -> dict[str, float]:
    """Distances of the network with one slot replaced: on few samples, of the best on more."""
    found = {ORIGINAL: 0.0}
    others = [each for each in entries if each.candidate.name != ORIGINAL]
    nets = {}
    for each in others:
        if over():
            break
        name = each.candidate.name
        nets[name] = assembled(subject, kinds, {slot: each.candidate}, fits)
        found[name] = subject.quality(nets[name], count).divergence
    measured = [each for each in others if each.candidate.name in nets]
    points = [(each.latency_ms, found[each.candidate.name]) for each in measured]
    for place in best_fronts(points, _FINALISTS):
        if over():
            break
        name = measured[place].candidate.name
        found[name] = subject.quality(nets[name], _MORE * count).divergence
    return found


def _middle(candidates: Sequence[Candidate]) -> Candidate | None:
    return candidates[len(candidates) // 2] if candidates else None
