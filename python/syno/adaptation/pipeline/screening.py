"""The candidates that are worth a choice in each slot: by MACs, fit error and latency.

1. `_by_macs`      drops what does not fit, or needs nearly as many MACs as the layer
2. `_rough_errors` fits the others roughly in one slot of each kind: all of them in the smallest,
                   and in the other kinds those that were best there
3. `_mutated`      adds neighbors of the best in the smallest kind, which are fitted there, too
4. `_screened`     measures the best fronts of MACs and error, and keeps those of error and what
                   the goals limit: latency, MACs or parameters
5. `fitted`        fits what is left in every slot
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, TypeVar

import torch

from syno._util.errors import UserError
from syno.adaptation.activations import Activations
from syno.adaptation.factors import Factors
from syno.adaptation.fit import Fit, SharedSums
from syno.adaptation.pipeline.budget import Budget
from syno.adaptation.pipeline.journal import AdaptationJournal, Scope
from syno.adaptation.pipeline.kinds import Kind, by_slot
from syno.adaptation.pipeline.mutations import mutations
from syno.adaptation.pipeline.pool import (
    NO_LAYER,
    ORIGINAL,
    ORIGINAL_LAYER,
    REMOVED,
    Candidate,
    CandidateDocument,
)
from syno.adaptation.pipeline.progress import Progress
from syno.adaptation.pipeline.slot_latencies import SlotLatency, slot_latencies
from syno.adaptation.slots import fit_layer
from syno.inference.precision import FLOAT32
from syno.operators.operator import Operator
from syno.options import AdaptOptions
from syno.study.fronts import LATENCY, MACS, PARAMS

# Operators with a larger share of the layer's MACs are hardly ever faster.
_MOST_MACS = 0.8
# Rows of the data of a rough fit.
_ROUGH_ROWS = 4_000
_ROUGH_SWEEPS = 2
# Rounds over the weights of a fit, and of one that begins with fitted weights.
_SWEEPS, _AGAIN = 10, 3
# Steps of conjugate gradients of a rough fit, and of one that has to end exactly.
_ROUGH_STEPS, _EXACT_STEPS = 60, 400
# Operations of a rough fit, some seconds; operators that need more are no candidates.
_MOST_WORK = 1e11
# Candidates with errors above this are no better than nothing.
_WORST = 0.95
# Candidates are no faster than the layer unless they take at most this share of its time.
_FASTER = 0.97
# Generations of mutations, and the number of candidates that each of them comes from.
_GENERATIONS, _PARENTS = 2, 8
# Candidates that a slot has at least, however short the time is.
_LEAST = 4
# Seconds to compile and time a kernel, before one was measured.
_KERNEL_S = 1.0


class Row(TypedDict):
    """A `ScreenedCandidate` as plain values, with the name of its candidate."""

    name: str
    macs: int
    params: int
    latency_ms: float
    error: float
    format: str


Item = TypeVar("Item")


@dataclass(frozen=True)
class ScreenedCandidate:
    """A candidate in a kind of slot.

    error: of the fit there, relative to the layer's results; format: that of the latency.
    """

    candidate: Candidate
    macs: int
    params: int
    latency_ms: float
    error: float
    format: str = FLOAT32

    def cost(self, name: str) -> float:
        """What it needs: one of `COSTS`."""
        return {LATENCY: self.latency_ms, MACS: self.macs, PARAMS: self.params}[name]


class Fits:
    """Fitted weights of candidates in slots. Errors are in the journal; weights are made anew."""

    def __init__(self, recorded: Mapping[str, Activations], kinds: Mapping[str, Kind]) -> None:
        self._recorded = recorded
        self._kinds = by_slot(kinds)
        self._kept: dict[tuple[str, str], Fit] = {}
        # Of the slot that was fitted last: those of all slots would not fit into memory.
        self._shared = "", SharedSums()

    def fit(self, slot: str, candidate: Candidate, activations: Activations | None = None) -> Fit:
        """The fit of an operator in a slot, or a short one to other activations from there on."""
        key = slot, candidate.name
        binding = self._kinds[slot].binding(candidate)
        if key not in self._kept:
            if self._shared[0] != slot:
                self._shared = slot, SharedSums()
            self._kept[key] = fit_layer(
                candidate.operator,
                binding,
                self._recorded[slot],
                restarts=1,
                sweeps=_SWEEPS,
                shared=self._shared[1],
            )
        found = self._kept[key]
        if activations is None:
            return found
        return fit_layer(
            candidate.operator, binding, activations, sweeps=_AGAIN, initial=found.weights
        )

    def removed(self, slot: str) -> float:
        """The error of a slot that returns what it receives."""
        return _error_without_layer(self._recorded[slot])


def screened(
    kinds: Mapping[str, Kind],
    pool: Sequence[Candidate],
    recorded: Mapping[str, Activations],
    formats: Sequence[str],
    options: AdaptOptions,
    scope: Scope,
    budget: Budget,
    seed: int,
    progress: Progress,
) -> tuple[dict[str, list[ScreenedCandidate]], list[Candidate]]:
    """The entries of each kind of slot, the original layer first, and the pool with mutations.

    formats: of layers, as `slot_latencies` has them.

    Candidates are kept by what the goals limit alone: measured times, which vary from run to run,
    decide nothing about goals for MACs or parameters.
    """
    limited = scope.limited
    found: dict[str, list[ScreenedCandidate]] = {}
    grown = list(pool)
    costs = {kind.name: _by_macs(kind, pool) for kind in kinds.values()}
    out: set[str] = set()  # candidates that are not among the best of the first kind
    seconds = _KERNEL_S
    for number, kind in enumerate(_ordered(kinds, costs)):
        progress(number, len(kinds), kind.name)
        part = 1.0 / (len(kinds) - number)
        over = budget.until("candidates", 0.6 * part)
        here = {each: cost for each, cost in costs[kind.name].items() if each.name not in out}
        trial = _Trial(kind, here, recorded, scope.journal, over)
        if number == 0:
            grown += _mutated(trial, grown, options, seed)
            points = trial.points
            best = {trial.tried[place].name for place in best_fronts(points, 4 * options.keep)}
            out = {each.name for each in trial.costs} - best
            new = grown[len(pool) :]
            for other in kinds.values():
                if other is not kind:
                    costs[other.name] |= _by_macs(other, new)
        count = 2 * options.keep + 4
        if budget.limited:
            count = min(max(int(part * budget.left("candidates") / seconds), _LEAST), count)
        began = time.perf_counter()

        def search(kind: Kind = kind, trial: _Trial = trial, count: int = count) -> list[Row]:
            places = best_for(trial.tried, trial.cost, trial.error, limited, count)
            measured = [trial.tried[place] for place in places]
            rough = {each: trial.errors[each.name] for each in measured}
            times = slot_latencies(
                kind,
                measured,
                formats=formats,
                threads=options.threads,
                rounds=options.kernel_rounds,
            )
            return _screened(kind, trial.costs, rough, recorded[kind.name], times, options, limited)

        rows = scope.once("candidates", kind.name, search)
        seconds = max(seconds / 4, (time.perf_counter() - began) / count)
        by_name = {each.name: each for each in (ORIGINAL_LAYER, NO_LAYER, *grown)}
        found[kind.name] = [
            ScreenedCandidate(
                by_name[row["name"]],
                row["macs"],
                row["params"],
                row["latency_ms"],
                row["error"],
                row.get("format", FLOAT32),  # those of earlier versions have none
            )
            for row in rows
        ]
    progress(len(kinds), len(kinds), "")
    return found, grown


class _Trial:
    """Rough fits of candidates in a kind of slot.

    costs: MACs and parameters; errors: of the fits, by name, as far as there was time.
    """

    def __init__(
        self,
        kind: Kind,
        costs: Mapping[Candidate, tuple[int, int]],
        recorded: Mapping[str, Activations],
        journal: AdaptationJournal,
        over: Callable[[], bool],
    ) -> None:
        self.kind, self.journal = kind, journal
        self._recorded, self._over = recorded, over
        self.costs: dict[Candidate, tuple[int, int]] = {}
        self.errors: dict[str, float] = {}
        self.add(costs, "")

    def add(self, costs: Mapping[Candidate, tuple[int, int]], step: str) -> None:
        """Fit more candidates."""
        self.costs |= costs
        self.errors |= self.journal.once(
            "rough",
            f"{self.kind.name} {step}".strip(),
            lambda: _rough_errors(self.kind, costs, self._recorded[self.kind.name], self._over),
        )

    @property
    def tried(self) -> list[Candidate]:
        """The candidates with an error, one of those that cost and miss exactly as much."""
        distinct: dict[tuple[int, int, str], Candidate] = {}
        for each, cost in self.costs.items():
            if each.name in self.errors:
                distinct.setdefault((*cost, f"{self.errors[each.name]:.6g}"), each)
        return list(distinct.values())

    @property
    def points(self) -> list[tuple[float, float]]:
        """MACs and error of each candidate of `tried`."""
        return [(self.cost(each, MACS), self.error(each)) for each in self.tried]

    def cost(self, candidate: Candidate, name: str) -> float:
        """MACs or parameters. The latency was not measured yet; MACs stand for it."""
        macs, params = self.costs[candidate]
        return float(params if name == PARAMS else macs)

    def error(self, candidate: Candidate) -> float:
        """The error of the rough fit."""
        return self.errors[candidate.name]


def _mutated(
    trial: _Trial, known: Sequence[Candidate], options: AdaptOptions, seed: int
) -> list[Candidate]:
    """Neighbors of the best candidates, and of the best of those and their neighbors, and so on."""
    made: list[Candidate] = []
    for step in range(_GENERATIONS if options.mutations else 0):
        count = math.ceil(options.mutations / _GENERATIONS)

        def mutate(
            step: int = step, count: int = count, done: Sequence[Candidate] = (*known, *made)
        ) -> list[CandidateDocument]:
            parents = [trial.tried[place] for place in best_fronts(trial.points, _PARENTS)]
            return [each.to_json() for each in mutations(parents, done, count, seed + step)]

        rows = trial.journal.once("mutations", str(step), mutate)
        new = [Candidate(**row) for row in rows]
        made += new
        trial.add(_by_macs(trial.kind, new), f"mutations {step}")
    return made


def _ordered(
    kinds: Mapping[str, Kind], costs: Mapping[str, Mapping[Candidate, tuple[int, int]]]
) -> list[Kind]:
    """The smallest kind in which most of the candidates fit, and then the others by their size."""
    most = max((len(each) for each in costs.values()), default=0)
    return sorted(
        kinds.values(), key=lambda kind: (len(costs[kind.name]) < 0.8 * most, kind.params)
    )


def fitted(
    kinds: Mapping[str, Kind],
    entries: Mapping[str, Sequence[ScreenedCandidate]],
    fits: Fits,
    scope: Scope,
    budget: Budget,
    progress: Progress,
) -> dict[str, dict[str, float]]:
    """The fit error of each candidate in each slot, by slot and name of the candidate.

    If time is short, slots have only the best candidates by their error and what goals limit.
    """
    errors: dict[str, dict[str, float]] = {}
    every = by_slot(kinds)
    for slot, kind in every.items():
        progress(len(errors), len(every), slot)
        over = budget.until("fits", 1.0 / (len(every) - len(errors)))

        def fit(
            slot: str = slot, kind: Kind = kind, over: Callable[[], bool] = over
        ) -> dict[str, float]:
            return _fitted(fits, slot, entries[kind.name], scope.limited, over)

        errors[slot] = scope.once("fits", slot, fit)
    progress(len(every), len(every), "")
    return errors


def _fitted(
    fits: Fits,
    slot: str,
    entries: Sequence[ScreenedCandidate],
    limited: Sequence[str],
    over: Callable[[], bool],
) -> dict[str, float]:
    first = best_for(entries, ScreenedCandidate.cost, lambda each: each.error, limited, _LEAST)
    order = [*first, *(place for place in range(len(entries)) if place not in first)]
    found: dict[str, float] = {}
    for number, place in enumerate(order):
        each = entries[place].candidate
        if each.is_operator and number >= _LEAST and over():
            continue
        found[each.name] = _error(fits, slot, each)
    return found


def _error(fits: Fits, slot: str, candidate: Candidate) -> float:
    if candidate.is_operator:
        return fits.fit(slot, candidate).error
    return 0.0 if candidate is ORIGINAL_LAYER else fits.removed(slot)


def _screened(
    kind: Kind,
    costs: Mapping[Candidate, tuple[int, int]],
    errors: Mapping[Candidate, float],
    activations: Activations,
    times: Mapping[str, SlotLatency],
    options: AdaptOptions,
    limited: Sequence[str],
) -> list[Row]:
    own = times[ORIGINAL]
    rows = [
        _row(ScreenedCandidate(ORIGINAL_LAYER, kind.macs, kind.params, own.ms, 0.0, own.format))
    ]
    if kind.removable:
        ms, form = times[REMOVED]
        error = _error_without_layer(activations)
        rows.append(_row(ScreenedCandidate(NO_LAYER, 0, 0, ms, error, form)))
    entries = [
        ScreenedCandidate(
            each, *costs[each], times[each.name].ms, errors[each], times[each.name].format
        )
        for each in errors
        if each.name in times
    ]
    most = {LATENCY: _FASTER * own.ms, MACS: kind.macs, PARAMS: kind.params}
    kept: dict[ScreenedCandidate, None] = {}
    for name in limited:
        less = [each for each in entries if each.cost(name) < most[name]]
        places = best_for(
            less, ScreenedCandidate.cost, lambda each: each.error, [name], options.keep
        )
        kept |= dict.fromkeys(less[place] for place in places)
    order = sorted(kept, key=lambda each: (each.cost(limited[0]), each.error))
    return [*rows, *map(_row, order)]


def _error_without_layer(activations: Activations) -> float:
    energy = float(activations.y.double().square().sum())
    difference = (activations.y - activations.x).double().square().sum()
    return float(difference) / max(energy, 1e-30)


def _row(entry: ScreenedCandidate) -> Row:
    return {
        "name": entry.candidate.name,
        "macs": entry.macs,
        "params": entry.params,
        "latency_ms": entry.latency_ms,
        "error": entry.error,
        "format": entry.format,
    }


def _by_macs(kind: Kind, pool: Sequence[Candidate]) -> dict[Candidate, tuple[int, int]]:
    """MACs and parameters of the candidates that fit and need fewer MACs than the layer."""
    found = {}
    for each in pool:
        try:
            binding = kind.binding(each)
            macs = each.operator.macs(binding)
        except UserError:  # it does not fit these slots
            continue
        if 0 < macs < _MOST_MACS * kind.macs:
            found[each] = macs, each.operator.params(binding)
    return found


def _rough_errors(
    kind: Kind,
    costs: Mapping[Candidate, tuple[int, int]],
    activations: Activations,
    over: Callable[[], bool],
) -> dict[str, float]:
    """Errors of rough fits by name, without those of operators that say nothing of the layer."""
    part = _part(activations)
    errors: dict[str, float] = {}
    shared = SharedSums()
    for each in costs:
        if len(errors) >= _LEAST and over():
            break
        error = _rough(each.operator, kind.binding(each), part, shared)
        if error is not None and error < _WORST:
            errors[each.name] = error
    return errors


def _rough(
    operator: Operator,
    binding: Mapping[str, int],
    activations: Activations,
    shared: SharedSums,
) -> float | None:
    """The error of a rough fit; None for an operator that is too large to fit."""
    try:
        factors = Factors.of(operator, binding)
        one = len(factors.weights) == 1
        exact = one and not factors.weights[0].is_one_to_one
        rows = len(activations.x) * math.prod(factors.rows)
        steps = _EXACT_STEPS if exact else 0 if one else _ROUGH_STEPS
        if factors.work(rows, steps) > _MOST_WORK:
            return None
        fit = fit_layer(
            operator,
            binding,
            activations,
            restarts=1,
            sweeps=_ROUGH_SWEEPS,
            shared=shared,
            factors=factors,
        )
        return fit.error
    except UserError:  # larger than a fit can be
        return None


def _part(activations: Activations) -> Activations:
    """As many images as a rough fit needs."""
    rows = max(1, activations.y[0].numel() // activations.y.shape[1])
    images = min(max(_ROUGH_ROWS // rows, 16), len(activations.x))
    return Activations(activations.x[:images], activations.y[:images])


def best_for(
    candidates: Sequence[Item],
    cost: Callable[[Item, str], float],
    error: Callable[[Item], float],
    limited: Sequence[str],
    count: int,
) -> list[int]:
    """The places of `count` candidates for each of the costs, of the best fronts of it and error.

    Ascending by the first cost.
    """
    found: set[int] = set()
    for name in limited:
        found |= set(best_fronts([(cost(each, name), error(each)) for each in candidates], count))
    return sorted(
        found, key=lambda place: (cost(candidates[place], limited[0]), error(candidates[place]))
    )


def best_fronts(points: Sequence[tuple[float, float]], count: int) -> list[int]:
    """Select `count` points: the front (both coordinates small), then that of the others, and on.

    Returns:
        The places of the selected points, ascending by the first coordinate.
    """
    left = sorted(range(len(points)), key=lambda place: points[place])
    chosen: list[int] = []
    while left and len(chosen) < count:
        best, front = float("inf"), []
        for place in left:
            if points[place][1] < best:
                best = points[place][1]
                front.append(place)
        # Of a front that is too large, points at equal distances.
        room = count - len(chosen)
        if len(front) > room:
            steps = torch.linspace(0, len(front) - 1, room).round().int().tolist()
            front = [front[step] for step in dict.fromkeys(steps)]
            chosen += front
            break
        chosen += front
        taken = set(front)
        left = [place for place in left if place not in taken]
    return sorted(chosen, key=lambda place: points[place])
