"""Several objectives and constraints in surrogate search, on results that are made up."""

import dataclasses
import math
import statistics

import numpy as np
import pytest

from syno.features import FEATURES
from syno.store.objective import ACCURACY
from syno.store.objectives import parse_objectives
from syno.study import History, HistoryEntry
from syno.study.methods import UniformSampling, make_method
from syno.study.methods.history import Trial
from syno.study.observations import Observations
from syno.surrogate import fit_model

from .test_methods import small_members

BASELINE = Trial(0, "ok", "", 0.5, 0.5, None, (), 1.0, 1.0, 1_000_000, 1000, 0, 1.0)


def trial(member, accuracy, ratio, status="ok"):
    value = accuracy if status == "ok" else None
    return Trial(
        0, status, "", value, value, None, (), ratio, ratio, member.macs, member.params, 0, 1
    )


def surrogate(members, seed, **options):
    return make_method("surrogate", members, seed, options)


def history(members, count, named, bounds=(), results=lambda c: (0.5, 0.5)):
    entries = []
    for number, member in enumerate(list(members)[:count]):
        found = trial(member, *results(member))
        entries.append(
            HistoryEntry(number + 1, member.key, found.status, 0.5, "", (found,), number + 1)
        )
    objectives = parse_objectives(named, bounds, ACCURACY)
    return History(count + 1, tuple(entries), ACCURACY, (BASELINE,), objectives)


def fit(features, targets, *, results):
    return fit_model("gaussian", features, targets)


def gains(members, seen, pool):
    observed = Observations.of(seen, seen.entries, members)
    places = np.array(pool)
    known = members.features([members.place(e.key) for e in seen.entries])
    return observed.gain(known, places, members.features(places), fit)


def test_a_study_of_one_objective_has_no_observations():
    members = small_members()
    seen = history(members, 5, ["accuracy"])
    assert Observations.of(seen, seen.entries, members) is None
    plain = dataclasses.replace(seen, objectives=None)
    assert Observations.of(plain, plain.entries, members) is None
    bounded = history(members, 5, [], ["macs<=1e9"])
    assert Observations.of(bounded, bounded.entries, members) is not None


def test_macs_are_known_so_a_costly_operator_adds_nothing():
    members = small_members()
    seen = history(members, 12, ["accuracy", "macs"])
    middle = float(np.median([c.macs for c in members]))
    cheap = dataclasses.replace(BASELINE, macs=int(middle))
    seen = dataclasses.replace(seen, baseline=(cheap,))
    found = gains(members, seen, range(len(members)))
    for member, value in zip(members, found, strict=True):
        if member.macs >= middle:
            assert value < 1e-9
    assert found.max() > 0


def test_operators_that_break_a_constraint_are_not_proposed():
    members = small_members()
    bound = float(np.median([c.macs for c in members]))
    seen = history(members, 12, ["accuracy"], [f"macs<={bound}"])
    found = gains(members, seen, range(len(members)))
    macs = np.array([c.macs for c in members])
    assert (found[macs > bound] == 0).all()
    assert (found[macs <= bound] > 0).all()


def test_a_measured_constraint_lowers_the_gain_by_its_probability():
    members = small_members()

    def results(member):
        return 0.5, 0.4 + member.macs / max(c.macs for c in members)

    loose = history(members, 30, ["accuracy"], ["latency_ratio<=9"], results)
    tight = history(members, 30, ["accuracy"], ["latency_ratio<=0.6"], results)
    places = range(len(members))
    before, after = gains(members, loose, places), gains(members, tight, places)
    assert (after <= before + 1e-12).all()
    share = after / before
    macs = np.array([c.macs for c in members])
    assert share[macs.argmin()] > share[macs.argmax()]


def test_a_bound_of_a_target_is_no_factor_too(monkeypatch):
    """The hypervolume counts from the bound, so its probability is in the expected gain."""
    members = small_members()
    asked = []

    def chance(constraint, found, *, is_sure):
        asked.append((str(constraint), is_sure))
        return np.ones(len(found.mean))

    monkeypatch.setattr("syno.study.observations._chance", chance)
    bounds = ["accuracy>=0.3", "latency_ratio<=0.9"]
    seen = history(members, 12, ["accuracy", "macs"], bounds)
    gains(members, seen, range(len(members)))
    assert [text for text, is_sure in asked if not is_sure] == ["latency_ratio<=0.9"]


def test_failures_count_as_the_worst_result_and_outliers_less():
    members = small_members()
    numbers = iter(range(100))

    def results(_):
        number = next(numbers)
        if number == 3:
            return 0.9, 0.5, "error"
        return (0.01 if number == 4 else 0.5 + number / 1000), 0.5

    seen = history(members, 20, ["accuracy", "latency_ratio"], (), results)
    observed = Observations.of(seen, seen.entries, members)
    assert math.isnan(observed.values["accuracy"][3])
    targets = observed._targets("accuracy")
    assert targets[3] == targets[4] == targets.min() > 0.4
    assert observed.ranks()[3] == 0
    assert (observed.ranks()[5:] > 0).all()


@pytest.mark.parametrize("targets", [("accuracy", "macs"), ("accuracy", "latency_ratio", "params")])
def test_a_front_is_found_in_fewer_trials_than_by_sampling(targets):
    members = small_members()
    rows = members.features(range(len(members)))
    spectrum = rows[:, list(FEATURES).index("position_spectrum")]
    quality = dict(zip((c.key for c in members), 0.2 + 0.05 * spectrum, strict=True))
    most = max(c.macs for c in members)

    def result(member):
        return trial(member, quality[member.key], member.macs / most)

    baseline = dataclasses.replace(BASELINE, macs=most, params=max(c.params for c in members))
    objectives = parse_objectives(targets, (), ACCURACY)

    def reached(method):
        entries = []
        for ask in range(1, 17):
            seen = History(ask, tuple(entries), ACCURACY, (baseline,), objectives)
            found = members[members.place(method.propose(seen).key)]
            entries.append(HistoryEntry(ask, found.key, "ok", 0.5, "", (result(found),), ask))
        return objectives.volume([e.last for e in entries], baseline)

    best = objectives.volume([result(c) for c in members], baseline)
    found = statistics.fmean(reached(surrogate(members, seed)) for seed in range(5))
    sampled = statistics.fmean(reached(UniformSampling(members, seed)) for seed in range(15))
    assert best - found < 0.85 * (best - sampled)


def test_a_ladder_and_an_unknown_way_of_several():
    members = small_members()
    seen = history(members, 12, ["accuracy", "macs"])
    method = surrogate(members, 0, uniform=0.0)
    assert method._is_several(seen)
    assert not method._is_several(dataclasses.replace(seen, has_rungs=True))
    with pytest.raises(Exception, match="there is no several 'both'"):
        surrogate(members, 0, several="both")


def test_proposals_follow_from_the_history_alone():
    members = small_members()
    words = np.random.default_rng(0)
    results = {c.key: tuple(words.uniform(0.2, 0.9, 2)) for c in members}
    objectives = parse_objectives(["accuracy", "latency_ratio"], (), ACCURACY)
    one = surrogate(members, 5)
    entries = []
    for ask in range(1, 40):
        seen = History(ask, tuple(entries), ACCURACY, (BASELINE,), objectives)
        found = one.propose(seen)
        if ask % 7 == 0:  # an object that has seen nothing before
            assert surrogate(members, 5).propose(seen).key == found.key
        member = members[members.place(found.key)]
        entries.append(
            HistoryEntry(ask, found.key, "ok", 0.5, "", (trial(member, *results[found.key]),), ask)
        )
