"""Surrogate-ranked synthesis: what it proposes on operators with known values."""

import statistics

import numpy as np
import pytest

import syno
from syno.store.objective import ACCURACY
from syno.store.objectives import parse_objectives
from syno.study import History, HistoryEntry, Members
from syno.study.methods import make_method
from syno.study.methods.surrogate import SurrogateSearch, fitted
from syno.study.warm_start import given_data, in_words, warm_start
from syno.surrogate import SurrogateData

from .test_methods import small_members


def value(members, key):
    """A function of a few features: wide fields and full rank are good."""
    row = dict(zip(syno.features.FEATURES, members.features([members.place(key)])[0], strict=True))
    return row["position_spectrum"] + 0.1 * row["field_effective"] - 0.02 * row["log_macs"]


def trials_to_best(name, seed, **options):
    members = small_members()
    values = {c.key: value(members, c.key) for c in members}
    best = set(sorted(values, key=values.__getitem__)[-2:])
    method = make_method(name, members, seed, options)
    entries: list[HistoryEntry] = []
    while True:
        ask = len(entries) + 1
        operator = method.propose(History(ask, tuple(entries)))
        entries.append(HistoryEntry(ask, operator.key, "ok", values[operator.key], told=ask))
        if operator.key in best:
            return ask


def test_finds_the_best_in_fewer_trials_than_uniform_sampling():
    found = statistics.median(trials_to_best("surrogate", seed) for seed in range(5))
    uniform = statistics.median(trials_to_best("uniform", seed) for seed in range(15))
    assert found < 0.6 * uniform


def first_trials(target, count=20, **options):
    """The operators of the first trials, whose accuracy rises with the MACs to the last digit."""
    members = small_members()
    places = {c.key: c for c in members}
    largest = max(c.macs for c in members)
    method = make_method("surrogate", members, 0, options)
    entries: list[HistoryEntry] = []
    while len(entries) < count:
        ask = len(entries) + 1
        operator = method.propose(
            History(ask, tuple(entries), objectives=parse_objectives((target,), (), ACCURACY))
        )
        share = places[operator.key].macs / largest
        score = share if target == "accuracy" else -share
        entries.append(HistoryEntry(ask, operator.key, "ok", score, told=ask))
    return [places[entry.key].macs for entry in entries]


@pytest.mark.parametrize(("target", "is_larger"), [("accuracy", True), ("latency_ratio", False)])
def test_a_trend_leads_the_first_proposals(target, is_larger):
    middle = statistics.median(c.macs for c in small_members())
    led, free = first_trials(target, 8), first_trials(target, 8, trend=0)
    beyond = [sum((macs > middle) == is_larger for macs in found) for found in (led, free)]
    assert beyond[0] == 8 > beyond[1]


def test_a_trend_that_does_not_hold_is_given_up():
    members = small_members()
    history = list(members)[:40]
    entries = tuple(  # the accuracy falls where the MACs rise
        HistoryEntry(i + 1, c.key, "ok", -float(c.macs), told=40) for i, c in enumerate(history)
    )
    method = make_method("surrogate", members, 0, {"uniform": 0.0, "local": 0.0})
    chosen = method.propose(History(41, entries)).key
    left = sorted(c.macs for c in members if c.key not in {e.key for e in entries})
    macs = {c.key: c.macs for c in members}
    assert macs[chosen] <= left[len(left) // 4]


def test_refits_become_rarer():
    counts = sorted({fitted(results, 2) for results in range(300)})
    assert counts[:5] == [0, 2, 4, 6, 8]
    assert counts[-2:] == [272, 288]
    assert all(fitted(count, 2) == count for count in counts)


@pytest.mark.parametrize("acquisition", ["improvement", "bound", "thompson"])
def test_workers_get_different_operators(acquisition):
    members = small_members()
    method = SurrogateSearch(members, 0, acquisition=acquisition, uniform=0.0)
    entries = [
        HistoryEntry(i + 1, c.key, "ok", value(members, c.key), told=20)
        for i, c in enumerate(list(members)[:20])
    ]
    keys = set()
    for ask in range(21, 31):
        operator = method.propose(History(ask, tuple(entries)))
        keys.add(operator.key)
        entries.append(HistoryEntry(ask, operator.key, None))
    assert len(keys) == 10


def test_a_small_pool_has_the_neighbors_of_the_best():
    members = small_members()
    method = SurrogateSearch(members, 0, pool=40, neighbors=5, uniform=0.0, local=1.0)
    entries = tuple(
        HistoryEntry(i + 1, c.key, "ok", value(members, c.key), told=12)
        for i, c in enumerate(list(members)[:12])
    )
    operator = method.propose(History(13, entries))
    near = {n.key for e in entries for n in members.neighbors(e.key, 5)}
    assert operator.key in near


@pytest.mark.slow
def test_the_model_may_be_selected_by_cross_validation():
    members = small_members()
    entries = tuple(
        HistoryEntry(i + 1, c.key, "ok", value(members, c.key), told=30)
        for i, c in enumerate(list(members)[:30])
    )
    found = [
        SurrogateSearch(members, 0, model="auto", uniform=0.0).propose(History(31, entries))
        for _ in range(2)
    ]
    assert found[0] == found[1]


def old_data(members, sign=1.0):
    rows = members.features(range(0, len(members), 2))
    keys = [members[p].key for p in range(0, len(members), 2)]
    return SurrogateData("other.db:a", rows, tuple(sign * value(members, k) for k in keys))


def test_results_of_another_study_lead_to_good_first_proposals():
    document = old_data(small_members()).to_json()
    warm = statistics.median(
        trials_to_best("surrogate", seed, warm_start=document) for seed in range(3)
    )
    assert warm <= 8


def test_a_misleading_study_loses_its_weight():
    members = small_members()
    entries = tuple(
        HistoryEntry(i + 1, c.key, "ok", value(members, c.key), told=30)
        for i, c in enumerate(list(members)[1:60:2])
    )
    history = History(31, entries)
    weights = []
    for sign in (1.0, -1.0):
        method = SurrogateSearch(members, 0, warm_start=old_data(members, sign).to_json())
        found = method.transfer(history)
        assert found.results == 30
        assert np.sign(found.correlation) == sign
        weights.append(found.weight)
        assert method.transfer(History(1, ())).weight == pytest.approx(0.6)
    assert weights[0] > 0.7
    assert weights[1] < 0.15
    with pytest.raises(syno.UserError, match="did not start"):
        SurrogateSearch(members, 0).transfer(history)


def test_what_a_search_starts_from_is_described():
    assert "'other.db:a'" in in_words(old_data(small_members()))


@pytest.mark.parametrize(
    ("text", "message"),
    [("study", "STORE:STUDY"), ("none.db:a", "no store"), ("none.json", "cannot read")],
)
def test_a_start_that_does_not_exist_is_named(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(syno.UserError, match=message):
        warm_start(text)


def test_other_methods_do_not_start_from_a_study():
    with pytest.raises(syno.UserError, match="--method surrogate"):
        given_data("runs.db:a", "local")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial": 1}, "'initial'"),
        ({"uniform": 1.5}, "uniform is a share"),
        ({"uniform": "some"}, "'uniform' is a number, got 'some'"),
        ({"locally": 1.0}, "'surrogate' has no such option: 'locally'\\n.*\\n.*mean: local"),
        ({"model": "tree"}, "no model 'tree'"),
        ({"acquisition": "luck"}, "no acquisition 'luck'"),
        ({"warm_start": {"format": "syno surrogate", "version": 0}}, "another version"),
        ({"refit": 0}, "'refit'"),
        ({"trend": "up"}, "'trend' is a number, got 'up'"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(syno.UserError, match=message):
        make_method("surrogate", small_members(), 0, options)


def test_a_space_is_exhausted():
    few = Members(type("Space", (), {"operators": [c.operator for c in small_members()][:3]}))
    entries = tuple(HistoryEntry(i + 1, c.key, "ok", 0.5) for i, c in enumerate(few))
    assert make_method("surrogate", few, 0, {}).propose(History(4, entries)) is None
