"""Several objectives and constraints in surrogate search, on results that are made up."""

import dataclasses
import math
import statistics

import numpy as np
import pytest

from syno.features import FEATURES
from syno.store.objective import ACCURACY
from syno.store.objectives import parse_objectives
from syno.study import Entry, History
from syno.study.methods import UniformSampling, make_method
from syno.study.methods.history import Trial
from syno.study.observations import Observations
from syno.surrogate import fit_model

from .test_methods import small_candidates

BASELINE = Trial(0, "ok", "", 0.5, 0.5, None, (), 1.0, 1.0, 1_000_000, 1000, 0, 1.0)


def trial(candidate, accuracy, ratio, status="ok"):
    value = accuracy if status == "ok" else None
    return Trial(
        0, status, "", value, value, None, (), ratio, ratio, candidate.macs, candidate.params, 0, 1
    )


def surrogate(candidates, seed, **options):
    return make_method("surrogate", candidates, seed, options)


def history(candidates, count, named, bounds=(), results=lambda c: (0.5, 0.5)):
    entries = []
    for number, candidate in enumerate(list(candidates)[:count]):
        found = trial(candidate, *results(candidate))
        entries.append(
            Entry(number + 1, candidate.key, found.status, 0.5, "", (found,), number + 1)
        )
    objectives = parse_objectives(named, bounds, ACCURACY)
    return History(count + 1, tuple(entries), ACCURACY, (BASELINE,), objectives)


def fit(features, targets, *, results):
    return fit_model("gaussian", features, targets)


def gains(candidates, seen, pool):
    observed = Observations.of(seen, seen.entries, candidates)
    places = np.array(pool)
    known = candidates.features([candidates.place(e.key) for e in seen.entries])
    return observed.gain(known, places, candidates.features(places), fit)


def test_a_study_of_one_objective_has_no_observations():
    candidates = small_candidates()
    seen = history(candidates, 5, ["accuracy"])
    assert Observations.of(seen, seen.entries, candidates) is None
    plain = dataclasses.replace(seen, objectives=None)
    assert Observations.of(plain, plain.entries, candidates) is None
    bounded = history(candidates, 5, [], ["macs<=1e9"])
    assert Observations.of(bounded, bounded.entries, candidates) is not None


def test_macs_are_known_so_a_costly_operator_adds_nothing():
    candidates = small_candidates()
    seen = history(candidates, 12, ["accuracy", "macs"])
    middle = float(np.median([c.macs for c in candidates]))
    cheap = dataclasses.replace(BASELINE, macs=int(middle))
    seen = dataclasses.replace(seen, baseline=(cheap,))
    found = gains(candidates, seen, range(len(candidates)))
    for candidate, value in zip(candidates, found, strict=True):
        if candidate.macs >= middle:
            assert value < 1e-9
    assert found.max() > 0


def test_operators_that_break_a_constraint_are_not_proposed():
    candidates = small_candidates()
    bound = float(np.median([c.macs for c in candidates]))
    seen = history(candidates, 12, ["accuracy"], [f"macs<={bound}"])
    found = gains(candidates, seen, range(len(candidates)))
    macs = np.array([c.macs for c in candidates])
    assert (found[macs > bound] == 0).all()
    assert (found[macs <= bound] > 0).all()


def test_a_measured_constraint_lowers_the_gain_by_its_probability():
    candidates = small_candidates()

    def results(candidate):
        return 0.5, 0.4 + candidate.macs / max(c.macs for c in candidates)

    loose = history(candidates, 30, ["accuracy"], ["latency_ratio<=9"], results)
    tight = history(candidates, 30, ["accuracy"], ["latency_ratio<=0.6"], results)
    places = range(len(candidates))
    before, after = gains(candidates, loose, places), gains(candidates, tight, places)
    assert (after <= before + 1e-12).all()
    share = after / before
    macs = np.array([c.macs for c in candidates])
    assert share[macs.argmin()] > share[macs.argmax()]


def test_a_bound_of_a_target_is_no_factor_too(monkeypatch):
    """The hypervolume counts from the bound, so its probability is in the expected gain."""
    candidates = small_candidates()
    asked = []

    def chance(constraint, found, *, is_sure):
        asked.append((str(constraint), is_sure))
        return np.ones(len(found.mean))

    monkeypatch.setattr("syno.study.observations._chance", chance)
    bounds = ["accuracy>=0.3", "latency_ratio<=0.9"]
    seen = history(candidates, 12, ["accuracy", "macs"], bounds)
    gains(candidates, seen, range(len(candidates)))
    assert [text for text, is_sure in asked if not is_sure] == ["latency_ratio<=0.9"]


def test_failures_count_as_the_worst_result_and_outliers_less():
    candidates = small_candidates()
    numbers = iter(range(100))

    def results(_):
        number = next(numbers)
        if number == 3:
            return 0.9, 0.5, "error"
        return (0.01 if number == 4 else 0.5 + number / 1000), 0.5

    seen = history(candidates, 20, ["accuracy", "latency_ratio"], (), results)
    observed = Observations.of(seen, seen.entries, candidates)
    assert math.isnan(observed.values["accuracy"][3])
    targets = observed._targets("accuracy")
    assert targets[3] == targets[4] == targets.min() > 0.4
    assert observed.ranks()[3] == 0
    assert (observed.ranks()[5:] > 0).all()


@pytest.mark.parametrize("targets", [("accuracy", "macs"), ("accuracy", "latency_ratio", "params")])
def test_a_front_is_found_in_fewer_trials_than_by_sampling(targets):
    candidates = small_candidates()
    rows = candidates.features(range(len(candidates)))
    spectrum = rows[:, list(FEATURES).index("position_spectrum")]
    quality = dict(zip((c.key for c in candidates), 0.2 + 0.05 * spectrum, strict=True))
    most = max(c.macs for c in candidates)

    def result(candidate):
        return trial(candidate, quality[candidate.key], candidate.macs / most)

    baseline = dataclasses.replace(BASELINE, macs=most, params=max(c.params for c in candidates))
    objectives = parse_objectives(targets, (), ACCURACY)

    def reached(method):
        entries = []
        for ask in range(1, 17):
            seen = History(ask, tuple(entries), ACCURACY, (baseline,), objectives)
            found = candidates[candidates.place(method.propose(seen).key)]
            entries.append(Entry(ask, found.key, "ok", 0.5, "", (result(found),), ask))
        return objectives.volume([e.last for e in entries], baseline)

    best = objectives.volume([result(c) for c in candidates], baseline)
    found = statistics.fmean(reached(surrogate(candidates, seed)) for seed in range(5))
    sampled = statistics.fmean(reached(UniformSampling(candidates, seed)) for seed in range(15))
    assert best - found < 0.85 * (best - sampled)


def test_a_ladder_and_an_unknown_way_of_several():
    candidates = small_candidates()
    seen = history(candidates, 12, ["accuracy", "macs"])
    method = surrogate(candidates, 0, uniform=0.0)
    assert method._is_several(seen)
    assert not method._is_several(dataclasses.replace(seen, has_rungs=True))
    with pytest.raises(Exception, match="there is no several 'both'"):
        surrogate(candidates, 0, several="both")


def test_proposals_follow_from_the_history_alone():
    candidates = small_candidates()
    words = np.random.default_rng(0)
    results = {c.key: tuple(words.uniform(0.2, 0.9, 2)) for c in candidates}
    objectives = parse_objectives(["accuracy", "latency_ratio"], (), ACCURACY)
    one = surrogate(candidates, 5)
    entries = []
    for ask in range(1, 40):
        seen = History(ask, tuple(entries), ACCURACY, (BASELINE,), objectives)
        found = one.propose(seen)
        if ask % 7 == 0:  # an object that has seen nothing before
            assert surrogate(candidates, 5).propose(seen).key == found.key
        candidate = candidates[candidates.place(found.key)]
        entries.append(
            Entry(ask, found.key, "ok", 0.5, "", (trial(candidate, *results[found.key]),), ask)
        )
