"""Surrogate-ranked synthesis: a model of the results ranks the operators that are not evaluated.

                  features                      acquisition, pending operators
    history  -->  model of the results  -->  rank of the pool  -->  proposal
              refits at fixed counts     neighbors of the best, samples of the space

A proposal is a function of (members, options, seed, history). What the model is fitted to
follows from the order in which results arrived, so a study that is resumed proposes the same
operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.features import FEATURES
from syno.operators.operator import Operator
from syno.store.records import OK
from syno.study.improvement import expected_excess
from syno.study.members import Members
from syno.study.methods.history import History, HistoryEntry
from syno.study.methods.method import choose, random_bytes, share
from syno.study.observations import Observations
from syno.surrogate import (
    MODELS,
    Prediction,
    SurrogateData,
    SurrogateModel,
    fit_model,
    normal_scores,
    select_model,
)
from syno.surrogate.models import distances, rank_correlation

Array = NDArray[np.float64]
AUTO = "auto"
ACQUISITIONS = ("improvement", "bound", "thompson")
SEVERAL = ("hypervolume", "rank")
# The counts of results at which `auto` compares the models.
_COMPARED = (24, 48, 96, 192, 384)
# Before these results, there is nothing to fit.
_LEAST = 4
# The best operators whose neighbors enter the pool.
_PARENTS = 12
# The rank correlation that is expected of another study, and how many results that is worth.
_EXPECTED, _EXPECTED_COUNT = 0.6, 8
_MACS = list(FEATURES).index("log_macs")
# Operators among which the most distant one is proposed at the start.
_CHOICE = 48


@dataclass(frozen=True)
class _Pool:
    """Operators that are ranked.

    places: of the members, ascending; features: of them, [places, features].
    scale, rows: standardized features; distance: how far nearest ones are apart.
    """

    places: NDArray[np.int64]
    features: Array
    scale: _Scale
    rows: Array
    distance: float

    @staticmethod
    def of(members: Members, places: NDArray[np.int64]) -> _Pool:
        """Look up and standardize the features of these members."""
        features = members.features(places)
        scale = _Scale(features)
        rows = scale(features)
        nearest = min(3, len(rows) - 1)
        apart = np.partition(distances(rows[:: max(1, len(rows) // 200)], rows), nearest, axis=1)
        return _Pool(places, features, scale, rows, max(float(np.median(apart[:, nearest])), 1e-3))


@dataclass(frozen=True)
class _Ranking:
    """What a fitted model says of its pool.

    near: which operators are neighbors of the best ones.
    mean, deviation: what is expected of them; best: the highest expectation among the operators
        with a result. With several objectives they are unused:
    gain: the expected increase of the hypervolume.
    """

    pool: _Pool
    near: NDArray[np.bool_]
    mean: Array
    deviation: Array
    best: float
    gain: Array | None = None


@dataclass(frozen=True)
class Transfer:
    """How far the results of another study are trusted.

    correlation: Spearman's, of what they predict and the results of this study, over `results` of
        them; 0 before there are two.
    weight: the correlation that is expected of further operators.
    """

    correlation: float
    results: int
    weight: float


class _Scale:
    """Standardizes features: mean 0, variance 1, cut off at 3; 0 where a feature is not known."""

    def __init__(self, rows: Array) -> None:
        self._mean, spread = np.nanmean(rows, axis=0), np.nanstd(rows, axis=0)
        self._spread = np.where(spread > 1e-12, spread, 1.0)

    def __call__(self, rows: Array) -> Array:
        return np.asarray(np.clip(np.nan_to_num((rows - self._mean) / self._spread), -3, 3))


class _Number(NamedTuple):
    """A number of operators, [operators], from their features, that a trend follows.

    slope: by how many standard deviations the result is expected to rise with one of the number.
    """

    slope: float
    of: Callable[[Array], Array]


class _Trend:
    """What is expected of operators before the model is fitted: a line over numbers of each.

    The numbers are standardized over the pool, and their sum with the expected slopes as weights is
    standardized again. The slope over this sum is that of least squares, drawn towards the greatest
    expected one as by `_EXPECTED_COUNT` results. Slopes are in standard deviations of the targets.

    Args:
        numbers: each computes a number of operators from their features, with the expected slope.
        pool: features of the operators that are ranked.
    """

    def __init__(self, numbers: Sequence[_Number], pool: Array) -> None:
        self._numbers = [
            (each.slope, each.of, *_middle_and_unit(each.of(pool))) for each in numbers
        ]
        self._expected = max(abs(each.slope) for each in numbers)
        self._whole = _middle_and_unit(self._sum(pool))
        self._slope = self._expected

    def fit(self, features: Array, targets: Array) -> None:
        """Fit the slope to operators with a result."""
        x = self._standardized(features)
        agreement = float(x @ (targets - targets.mean()))
        agreement += _EXPECTED_COUNT * self._expected * float(targets.std())
        self._slope = agreement / (float(x @ x) + _EXPECTED_COUNT)

    def __call__(self, features: Array) -> Array:
        return self._slope * self._standardized(features)

    def _standardized(self, features: Array) -> Array:
        middle, unit = self._whole
        return np.asarray(np.clip((self._sum(features) - middle) / unit, -3, 3))

    def _sum(self, features: Array) -> Array:
        found = np.zeros(len(features))
        for slope, number, middle, unit in self._numbers:
            found += slope * np.nan_to_num((number(features) - middle) / unit)
        return found


@dataclass(frozen=True)
class _Trended:
    """A model of what differs from a trend."""

    trend: _Trend
    model: SurrogateModel

    def predict(self, features: Array) -> Prediction:
        """See `SurrogateModel`."""
        found = self.model.predict(features)
        return Prediction(found.mean + self.trend(features), found.deviation)


class SurrogateSearch:
    """Proposes what a model of the results expects most of.

    The first proposals are spread over the features. Then a model is fitted to the results, again
    after every `refit` results, and ranks a pool: the neighbors of the best operators, and samples
    of the space. Operators that resemble a pending one are ranked lower, so that parallel workers
    get different ones.

    With one objective, more MACs are expected to give a better accuracy (or a longer latency)
    before there are results. The model is fitted to what differs from this trend, whose slope
    follows the results.

    Args:
        members: the operators of the space.
        seed: of the random numbers.
        initial: the number of first proposals. With a trend, they are among the operators of which
            it expects most.
        trend: by how many standard deviations the measure is expected to rise when the logarithm of
            the MACs rises by one; 0 for no trend. There is none with several objectives and with
            constraints.
        refit: the number of results after which the model is fitted again; a sixteenth of the
            results where that is more.
        model: "forest", "boosting", "gaussian", or "auto" for the one that ranks the results of
            this study best.
        acquisition: "improvement" (expected improvement), "bound" (mean plus `exploration`
            deviations) or "thompson" (a random function of the model).
        exploration: see `acquisition`.
        uniform: the share of proposals that are sampled uniformly.
        local: the share of proposals that must be neighbors of one of the best operators.
        neighbors: the number of nearest operators that count as neighbors.
        pool: the number of operators that are ranked.
        several: with several objectives or constraints, "hypervolume" (a model of each measure; the
            expected improvement of the hypervolume takes the place of `acquisition`) or "rank" (one
            model of the rank that joins them). With a ladder or `warm_start`, it is the rank.
        warm_start: the results of another study, as `SurrogateData.to_json`. What a forest predicts
            from them is added to the MACs in the trend.
    """

    foresees = False

    def __init__(
        self,
        members: Members,
        seed: int,
        *,
        initial: int = 8,
        trend: float = 0.5,
        refit: int = 2,
        model: str = "gaussian",
        acquisition: str = "improvement",
        exploration: float = 1.0,
        uniform: float = 0.05,
        local: float = 0.3,
        neighbors: int = 30,
        pool: int = 4000,
        several: str = "hypervolume",
        warm_start: Mapping[str, Json] | None = None,
    ) -> None:
        for name, number, least in (
            ("seed", seed, 0),
            ("initial", initial, 2),
            ("refit", refit, 1),
            ("neighbors", neighbors, 1),
            ("pool", pool, 1),
        ):
            checks.whole(f"'{name}'", number, least=least)
        for name, value, known in (
            ("model", model, (AUTO, *MODELS)),
            ("acquisition", acquisition, ACQUISITIONS),
            ("several", several, SEVERAL),
        ):
            if value not in known:
                raise UserError(
                    f"there is no {name} '{value}'\n  expected: one of {', '.join(known)}"
                )
        self._members, self._seed = members, seed
        # Another study takes the place of most first proposals.
        self._first = initial if warm_start is None else min(initial, _LEAST)
        self._refit = refit
        self._trend = checks.number("'trend'", trend)
        self._model, self._acquisition = model, acquisition
        self._exploration = checks.number("'exploration'", exploration)
        self._uniform, self._local = share("uniform", uniform), share("local", local)
        self._neighbors, self._most = neighbors, pool
        self._several = several
        self._warm = None if warm_start is None else SurrogateData.from_json(warm_start)
        self._old: SurrogateModel | None = None
        self._ranked: tuple[tuple[object, ...], _Ranking] | None = None
        self._selected: dict[tuple[object, ...], str] = {}

    def propose(self, history: History) -> Operator | None:
        """Select an operator whose key was not proposed yet."""
        used = set(self._places(history.entries))
        if len(used) == len(self._members):
            return None
        answered = _answered(history)
        known = fitted(len(answered), self._refit)
        if self._share(history.ask, "uniform") < self._uniform:
            place = self._sample(history.ask, used, "uniform")
        elif len(history.entries) < self._first or known < _LEAST:
            place = self._distant(history, used)
        else:
            place = self._best(history, answered[:known], used)
        return self._members[place].operator

    def _sample(self, ask: int, used: set[int], purpose: str) -> int:
        left = [place for place in range(len(self._members)) if place not in used]
        return choose(left, self._seed, ask, purpose)

    def _distant(self, history: History, used: set[int]) -> int:
        """Of some samples, the operator that is most unlike all proposed ones."""
        ask = history.ask
        left = [place for place in range(len(self._members)) if place not in used]
        found = sorted({choose(left, self._seed, ask, f"start {i}") for i in range(_CHOICE)})
        if numbers := self._numbers(history):
            rows = self._members.features(found)
            expected = _Trend(numbers, rows)(rows)
            kept = np.argsort(-np.nan_to_num(expected), kind="stable")[: max(1, _CHOICE // 3)]
            found = sorted(found[i] for i in kept)
        before = sorted(used)
        if not before:
            return choose(found, self._seed, ask, "first")
        rows = self._members.features(found + before)
        rows = _Scale(rows)(rows)
        apart = distances(rows[: len(found)], rows[len(found) :])
        return found[int(np.argmax(apart.min(axis=1)))]

    # The model.

    def _best(self, history: History, answered: list[HistoryEntry], used: set[int]) -> int:
        """The free operator of the pool with the highest acquisition."""
        ranking = self._ranking(history, answered)
        pool = ranking.pool
        free = ~np.isin(pool.places, list(used))
        if self._share(history.ask, "local") < self._local and (free & ranking.near).any():
            free &= ranking.near
        if not free.any():
            return self._sample(history.ask, used, "rest")
        score = self._score(ranking, history.ask) * self._unlike_pending(pool, history)
        return int(pool.places[int(np.argmax(np.where(free, score, -np.inf)))])

    def _score(self, ranking: _Ranking, ask: int) -> Array:
        """The acquisition, at least 0."""
        if ranking.gain is not None:
            return ranking.gain
        mean, deviation = ranking.mean, np.maximum(ranking.deviation, 1e-9)
        if self._acquisition == "improvement":
            found = expected_excess(mean, deviation, ranking.best)
        elif self._acquisition == "bound":
            found = mean + self._exploration * deviation
            found = found - found.min()
        else:
            words = self._bits(ask, "thompson", 64)
            found = mean + deviation * np.random.default_rng(words).standard_normal(len(mean))
            found = found - found.min()
        return found + 1e-12

    def _unlike_pending(self, pool: _Pool, history: History) -> Array:
        """A factor below 1 for operators that resemble a pending one."""
        pending = self._places([e for e in history.entries if e.status is None])
        if not pending:
            return np.ones(len(pool.places))
        rows = pool.scale(self._members.features(pending))
        near = distances(pool.rows, rows) / pool.distance
        return np.asarray(np.prod(1 - np.exp(-(near**2)), axis=1))

    def _ranking(self, history: History, answered: list[HistoryEntry]) -> _Ranking:
        """Rank the pool, again only if the results are others: it depends on nothing else."""
        entries = [e for e in answered if self._members.place(e.key) is not None]
        if self._is_several(history):
            state: tuple[object, ...] = tuple((e.key, e.trials) for e in entries)
        else:  # values may be ranks, which change while their order stays
            targets = normal_scores([_value(e) for e in entries])
            state = (*(e.key for e in entries), targets.tobytes())
        if self._ranked is None or self._ranked[0] != state:
            self._ranked = (state, self._rank(history, entries))
        return self._ranked[1]

    def _is_several(self, history: History) -> bool:
        is_wanted = self._several == "hypervolume" and self._warm is None
        return is_wanted and history.objectives is not None and not history.has_rungs

    def _rank(self, history: History, entries: list[HistoryEntry]) -> _Ranking:
        features = self._members.features(self._places(entries))
        observed = (
            Observations.of(history, entries, self._members) if self._is_several(history) else None
        )
        if observed is not None:
            pool, near = self._pooled(entries, observed.ranks())
            gain = observed.gain(features, pool.places, pool.features, self._fitted)
            nothing = np.zeros(len(gain))
            return _Ranking(pool, near, nothing, nothing, 0.0, gain)
        count, targets = len(entries), normal_scores([_value(e) for e in entries])
        pool, near = self._pooled(entries, targets)
        numbers = self._numbers(history)
        trend = _Trend(numbers, pool.features) if numbers else None
        model = self._fitted(features, targets, results=count, trend=trend)
        found = model.predict(pool.features)
        known = model.predict(features).mean
        return _Ranking(pool, near, found.mean, found.deviation, float(known.max()))

    def _fitted(
        self, features: Array, targets: Array, *, results: int, trend: _Trend | None = None
    ) -> SurrogateModel:
        if trend is not None:
            trend.fit(features, targets)
            targets = targets - trend(features)
        number = self._bits(results, "model", 31)
        model = fit_model(self._model_name(features, targets), features, targets, seed=number)
        return model if trend is None else _Trended(trend, model)

    def _numbers(self, history: History) -> list[_Number]:
        """What the trend follows; nothing for no trend."""
        found = [] if self._warm is None else [_Number(_EXPECTED, self._foreseen)]
        objectives, slope = history.objectives, self._trend
        if objectives is not None:
            first, *others = objectives.all
            if others or objectives.constraints:
                slope = 0.0
            elif objectives.rises_with_macs(first.name) != first.greater_is_better:
                slope = -slope
        return found if slope == 0 else [*found, _Number(slope, _log_macs)]

    def _foreseen(self, features: Array) -> Array:
        """What the results of the other study predict."""
        assert self._warm is not None
        if self._old is None:
            old = normal_scores(self._warm.values)
            self._old = fit_model("forest", self._warm.rows, old, seed=self._seed)
        return self._old.predict(features).mean

    def transfer(self, history: History) -> Transfer:
        """Measure how well the results of the other study rank those of this one.

        Raises:
            UserError: without `warm_start`.
        """
        if self._warm is None:
            raise UserError("this search did not start from another study")
        entries = [e for e in _answered(history) if self._members.place(e.key) is not None]
        features = self._members.features(self._places(entries))
        return self._transfer(features, normal_scores([_value(e) for e in entries]))

    def _transfer(self, features: Array, targets: Array) -> Transfer:
        count = len(targets)
        found = rank_correlation(self._foreseen(features), targets) if count else 0.0
        expected = _EXPECTED * _EXPECTED_COUNT + max(found, 0.0) * count
        return Transfer(found, count, expected / (_EXPECTED_COUNT + count))

    def _model_name(self, features: Array, targets: Array) -> str:
        if self._model != AUTO:
            return self._model
        count = max((n for n in _COMPARED if n <= len(targets)), default=0)
        if not count:
            return "gaussian"
        state = (count, targets[:count].tobytes(), features[:count].tobytes())
        if state not in self._selected:
            self._selected[state] = select_model(features[:count], targets[:count], seed=self._seed)
        return self._selected[state]

    # The pool.

    def _pooled(
        self, entries: list[HistoryEntry], ratings: Array
    ) -> tuple[_Pool, NDArray[np.bool_]]:
        """The operators that are ranked, and which of them are neighbors of the best ones."""
        best = sorted(range(len(entries)), key=lambda i: (-ratings[i], entries[i].ask))
        near = {
            place
            for i in best[:_PARENTS]
            for each in self._members.neighbors(entries[i].key, self._neighbors)
            if (place := self._members.place(each.key)) is not None
        }
        if len(self._members) <= self._most:
            pool = self._everything
        else:
            words = self._bits(len(entries), "pool", 64)
            order = np.random.default_rng(words).permutation(len(self._members))
            places = sorted(near | {int(p) for p in order[: max(0, self._most - len(near))]})
            pool = _Pool.of(self._members, np.array(places, dtype=np.int64))
        return pool, np.isin(pool.places, list(near))

    @cached_property
    def _everything(self) -> _Pool:
        return _Pool.of(self._members, np.arange(len(self._members)))

    def _places(self, entries: list[HistoryEntry] | tuple[HistoryEntry, ...]) -> list[int]:
        found = [self._members.place(entry.key) for entry in entries]
        return [place for place in found if place is not None]

    def _bits(self, number: int, purpose: str, count: int) -> int:
        """A random number of so many bits."""
        found = random_bytes(self._seed, number, purpose)
        return int.from_bytes(found, "big") >> (8 * len(found) - count)

    def _share(self, ask: int, purpose: str) -> float:
        """A random number from 0 to 1."""
        return self._bits(ask, f"share {purpose}", 48) / 2.0**48


def _log_macs(features: Array) -> Array:
    return features[:, _MACS]


def _middle_and_unit(values: Array) -> tuple[float, float]:
    """The mean and the standard deviation, or 1 where all are equal; those of known values."""
    known = values[np.isfinite(values)]
    if not len(known):
        return 0.0, 1.0
    spread = float(known.std())
    return float(known.mean()), spread if spread > 1e-12 else 1.0


def fitted(results: int, refit: int) -> int:
    """Return how many of the results the model is fitted to: see `refit`."""
    step = max(refit, (1 << results.bit_length() >> 1) // 16)
    return results - results % step


def _answered(history: History) -> list[HistoryEntry]:
    """The operators with a result, in the order in which the results arrived."""
    last = len(history.entries)
    done = [e for e in history.entries if e.status is not None]
    return sorted(done, key=lambda e: (last if e.told is None else e.told, e.ask))


def _value(entry: HistoryEntry) -> float:
    return entry.value if entry.status == OK and entry.value is not None else 0.0
