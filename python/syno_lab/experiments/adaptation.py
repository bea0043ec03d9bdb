"""How well cheap scores of an adaptation predict what networks reach after the fine-tuning.

Assignments of candidates to slots are drawn at random, assembled and fine-tuned for a short time.
Every predictor is known before: the sum of fit errors, the sum of one-slot losses, and so on. The
values of Spearman's correlation are positive where a predictor orders networks as they turn out.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syno._util.errors import UserError
from syno.adaptation.pipeline.arguments import AdaptationArguments
from syno.adaptation.pipeline.assembly import assembled
from syno.adaptation.pipeline.goals import Goal
from syno.adaptation.pipeline.run import AdaptationRun, Scored, started
from syno.adaptation.pipeline.source import AdaptationSource
from syno.operands.lookup import named_operators
from syno.store.environment import capture_environment
from syno.store.objective import Objective
from syno.study.fronts import LATENCY, MACS, PARAMS
from syno_lab.experiments.agreement import Correlation, spearman

if TYPE_CHECKING:
    from syno.train import Fidelity

# A short fine-tuning.
_EPOCHS, _STEPS = 1, 100
_PHASE = "random assignments"


@dataclass(frozen=True)
class Assigned:
    """A random assignment with its predictors, and what its network reaches.

    choice: the name of the candidate in each slot. fit_error, one_slot: sums over the slots of the
    fit errors, and of the distances of the outputs with this slot replaced alone. score: the sum of
    what joins both, and pairs: with what pairs of slots lose together. assembled: the distance of
    the outputs of the assembled network from the original's. macs, params, latency_ms: of the
    network, the latency by the model. fitted: the objective before the fine-tuning, and value
    after it. seconds: of the fine-tuning.
    """

    choice: Mapping[str, str]
    fit_error: float
    one_slot: float
    score: float
    pairs: float
    assembled: float
    macs: int
    params: int
    latency_ms: float
    fitted: float
    value: float
    seconds: float


# Predictors in words, with the sign that makes greater values better.
_PREDICTORS = (
    ("sum of fit errors", "fit_error", -1.0),
    ("sum of one-slot losses", "one_slot", -1.0),
    ("sum of fit errors and one-slot losses", "score", -1.0),
    ("the same with pairs of slots", "pairs", -1.0),
    ("loss of the assembled network", "assembled", -1.0),
    ("MACs", "macs", 1.0),
    ("parameters", "params", 1.0),
    ("latency by the model", "latency_ms", 1.0),
)


@dataclass(frozen=True)
class PredictorRanking:
    """What random assignments say about predictors.

    study: of the store, which continues. original: the objective of the original network.
    fidelity: of the fine-tuning. candidates: by slot. seconds: by phase.
    """

    study: str
    objective: Objective
    original: float
    fidelity: Fidelity
    candidates: Mapping[str, int]
    assignments: tuple[Assigned, ...]
    correlations: tuple[Correlation, ...]
    seconds: Mapping[str, float]


def rank_predictors(
    source: AdaptationSource, given: AdaptationArguments, assignments: int
) -> PredictorRanking:
    """Draw assignments, fine-tune their networks, and compare predictors with the results.

    Args:
        source: a trained network with its data, and the fidelity of the fine-tuning.
        given: the arguments of `syno.adapt`. With `name`, what an interrupted call has found is not
            computed again, and more assignments are added.
        assignments: their number.

    Raises:
        UserError: as `syno.adapt`, and if there are fewer different assignments.
    """
    # Assignments of operators: all channels stay.
    options = dataclasses.replace(given.options, widths=False)
    with started(source, dataclasses.replace(given, options=options)) as run:
        scored = run.scored(named_operators(given.operators), [[Goal(LATENCY, share=1.0)]])
        choices = _drawn(scored, assignments, given.seed)
        found = []
        for number, choice in enumerate(choices):
            run.progress(_PHASE, number, len(choices), "")
            with run.journal.phase(_PHASE):
                found.append(_assigned(run, scored, choice))
        run.progress(_PHASE, len(choices), len(choices), "")
        objective = run.subject.objective
        value = scored.original.value
        assert value is not None
        return PredictorRanking(
            study=run.journal.study.name,
            objective=objective,
            original=value,
            fidelity=source.fidelity,
            candidates={slot: len(of) for slot, of in scored.selector.entries.items()},
            assignments=tuple(found),
            correlations=correlations(found, objective),
            seconds=dict(run.journal.seconds),
        )


def short(source: AdaptationSource) -> AdaptationSource:
    """The source with a short fine-tuning, for many networks."""
    usual = source.fidelity
    change = {"steps": _STEPS} if usual.steps is not None else {"epochs": _EPOCHS}
    return dataclasses.replace(
        source, fidelity=usual.changed(name=usual.name_with(change), **change)
    )


def correlations(assignments: Sequence[Assigned], objective: Objective) -> tuple[Correlation, ...]:
    """Spearman's correlation of each predictor with the objective, with its interval."""
    reached = {n: objective.score(each.value) for n, each in enumerate(assignments)}
    before = {n: objective.score(each.fitted) for n, each in enumerate(assignments)}
    found = [
        spearman(words, {n: sign * getattr(e, field) for n, e in enumerate(assignments)}, reached)
        for words, field, sign in _PREDICTORS
    ]
    return (*found, spearman(f"{objective.name} before the fine-tuning", before, reached))


def _drawn(scored: Scored, count: int, seed: int) -> list[tuple[int, ...]]:
    """Different assignments; the first ones are the same for a greater number."""
    sizes = [len(of) for of in scored.selector.entries.values()]
    if math.prod(sizes) < 2 * count:
        raise UserError(
            f"there are too few different assignments of {sizes} candidates to draw {count}\n"
            "  what to do: fewer assignments, or more candidates (keep)"
        )
    draw = random.Random(seed)
    found: dict[tuple[int, ...], None] = {}
    while len(found) < count:
        found.setdefault(tuple(draw.randrange(size) for size in sizes))
    return list(found)


def _assigned(run: AdaptationRun, scored: Scored, places: tuple[int, ...]) -> Assigned:
    def measure() -> dict[str, Any]:
        return dataclasses.asdict(_tuned(run, scored, places))

    key = " ".join(map(str, places))
    return Assigned(**run.journal.once("random assignment", key, measure))


def _tuned(run: AdaptationRun, scored: Scored, places: tuple[int, ...]) -> Assigned:
    subject, selector, options = run.subject, scored.selector, run.options
    names = {
        slot: of[place].candidate.name
        for (slot, of), place in zip(selector.entries.items(), places, strict=True)
    }
    net = assembled(
        subject, scored.kinds, selector.candidates(names), scored.fits, refit=run.refitting
    )
    distance = subject.quality(net, options.score_images).divergence
    fitted = subject.value(net)
    result = run.tuner.tuned(net, subject.fidelity, seed=run.seed)
    costs = selector.costs(names, {})
    distances = {slot: run.journal.get("scores", slot) or scored.errors[slot] for slot in names}
    return Assigned(
        choice=names,
        fit_error=sum(scored.errors[slot][name] for slot, name in names.items()),
        one_slot=sum(distances[slot][name] for slot, name in names.items()),
        score=sum(scored.one_slot[slot][name] for slot, name in names.items()),
        pairs=selector.interactions.predicted(places),
        assembled=distance,
        macs=round(costs[MACS]),
        params=round(costs[PARAMS]),
        latency_ms=costs[LATENCY],
        fitted=fitted,
        value=result.value,
        seconds=result.seconds,
    )


def described(found: PredictorRanking) -> dict[str, object]:
    """Return everything that was measured, as plain values, with the machine."""
    return {
        "study": found.study,
        "objective": found.objective.name,
        "original": found.original,
        "fidelity": found.fidelity.to_json(),
        "candidates": dict(found.candidates),
        "assignments": [dataclasses.asdict(each) for each in found.assignments],
        "correlations": [dataclasses.asdict(each) for each in found.correlations],
        "seconds": dict(found.seconds),
        "environment": dataclasses.asdict(capture_environment(threads=1, rules="")),
    }
