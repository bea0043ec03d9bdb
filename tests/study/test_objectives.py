"""Objectives, constraints, retraining and patience of studies, with fake answers."""

from __future__ import annotations

import pytest

from syno._util.errors import UserError
from syno.store import Outcome, Store
from syno.store.objectives import Advance
from syno.store.overview import best_of, study_json
from syno.store.records import MeasurementResult
from syno.store.tables import progress_lines
from syno.study import Evaluations, NoProgress, Study, StudySettings, run
from syno.study.methods import METHODS
from syno.study.ratings import as_result, rated

from .fakes import FakeEvaluator, FakeRungs, FakeSpace, RealSpace, fake_ladder


@pytest.fixture
def store():
    with Store.open("sqlite://") as store:
        yield store


def settings(**options) -> StudySettings:
    return StudySettings(**{"evaluations": 20, "seed": 5, **options})


def test_settings_are_stored_and_have_no_trace_where_they_are_not_used(store):
    assert {"objectives", "constraints", "retrain", "patience"}.isdisjoint(settings().to_json())
    chosen = settings(
        objective=("accuracy", "latency_ratio"),
        constraint=("macs<=100000",),
        retrain=2,
        patience=7,
    )
    study = Study.create(store, "study", chosen, FakeSpace())
    again = Study.load(store, "study", FakeSpace(), patience=9)
    assert again.settings.retrain == 2
    assert again.settings.patience == 9
    assert again.objectives == study.objectives
    assert [str(t) for t in again.objectives.all] == ["accuracy:max", "latency_ratio:min"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": ("latency_ratio<=0.5", "latency_ratio>=0.8")}, "nothing can satisfy"),
        ({"objective": ("speed",)}, "is no measure"),
        ({"retrain": -1}, "'retrain'"),
        ({"patience": 0}, "'patience'"),
    ],
)
def test_mistakes_are_found_before_there_is_a_study(options, message):
    with pytest.raises(UserError, match=message):
        settings(**options)


def test_operators_beyond_a_constraint_on_macs_are_not_proposed(store):
    chosen = settings(constraint=("macs<=8000",))
    run(Study.create(store, "study", chosen, FakeSpace()), FakeEvaluator())
    macs = [e.macs for e in store.summary("study").trained]
    assert macs
    assert max(macs) <= 8000
    with pytest.raises(UserError, match=r"none of 100 operators satisfies .* macs<=10"):
        Study.create(store, "none", settings(constraint=("macs<=10",)), FakeSpace())
    assert [record.name for record in store.studies()] == ["study"]


def test_the_best_operator_satisfies_the_constraints(store):
    chosen = settings(constraint=("latency_ratio<=0.5",))
    run(Study.create(store, "study", chosen, FakeSpace()), FakeEvaluator())
    summary = store.summary("study")
    best = best_of(summary)
    allowed = [e for e in summary.trained if e.latency_ratio <= 0.5]
    assert best is max(allowed, key=lambda e: e.accuracy)
    assert max(e.accuracy for e in summary.trained) > best.accuracy


def test_the_archive_and_the_hypervolume_are_in_the_state_of_a_study(store):
    chosen = settings(objective=("accuracy", "latency_ratio"))
    run(Study.create(store, "study", chosen, FakeSpace()), FakeEvaluator())
    summary = store.summary("study")
    found = study_json(summary, operators=False)
    assert found["objectives"] == ["accuracy:max", "latency_ratio:min"]
    assert found["hypervolume"] == summary.progress[-1] > 0
    assert len(summary.archive) == len(found["archive"]) > 1
    assert found["trials_an_hour"] > 0
    values = [value for value in summary.progress if value is not None]
    assert values == sorted(values)
    assert len(summary.progress) == len(summary.ended) == 20


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("ladder", [False, True])
def test_every_method_works_with_several_objectives_and_with_a_ladder(store, method, ladder):
    targets = ("accuracy", "macs")
    content = fake_ladder().to_json() if ladder else None
    chosen = settings(method=method, ladder=content, objective=targets, evaluations=25)
    study = Study.create(store, "study", chosen, RealSpace())
    reason = run(study, FakeRungs() if ladder else FakeEvaluator())
    assert reason.name == "evaluations"
    summary = store.summary("study")
    assert len({e.key for e in summary.evaluations if e.is_evaluated}) == 25
    if ladder:
        assert summary.rungs[2].evaluated > 0


def outcome(accuracy: float, ratio: float, **more) -> Outcome:
    timed = MeasurementResult(
        median_ms=ratio, spread_ms=0.0, ratio=ratio, baseline=None, threads=1, repeats=3
    )
    return Outcome("ok", accuracy=accuracy, measurement=timed, rung="tiny", **more)


def test_ratings_at_a_higher_rung_are_higher(store):
    chosen = settings(objective=("accuracy", "latency_ratio"))
    objectives = Study.create(store, "study", chosen, FakeSpace()).objectives
    results = [as_result(n, outcome(n / 10, 1.0)) for n in range(1, 5)]
    above = as_result(3, outcome(0.1, 1.0))
    object.__setattr__(above, "rung_index", 1)
    failed = as_result(5, Outcome("error", reason="diverged", rung="tiny"))
    found = rated(objectives, [*results, above, failed], 2)
    assert found[5] == 0.0
    assert 0 < found[1] < found[2] < found[4] <= 0.5 < found[3] <= 1


def test_what_looks_best_is_trained_again_and_its_value_is_the_mean(store):
    chosen = settings(retrain=3, evaluations=30)
    run(Study.create(store, "study", chosen, FakeSpace()), FakeEvaluator())
    trained = sorted(store.summary("study").trained, key=lambda e: e.ask)
    best = -1.0
    repeated = 0
    for each in trained:
        by_seed = each.details.get("by_seed")
        first = each.accuracy if by_seed is None else by_seed["0"]
        assert (by_seed is not None) == (first > best), each
        if by_seed is not None:
            repeated += 1
            assert set(by_seed) <= {"0", "6", "7", "8"}
            assert each.accuracy == pytest.approx(sum(by_seed.values()) / len(by_seed))
        best = max(best, each.accuracy)
    assert 1 < repeated < len(trained)
    proposals = [e.ask for e in store.summary("study").evaluations]
    assert len(proposals) == len(set(proposals)), "a repetition is no evaluation of its own"


def test_a_study_without_progress_stops_and_a_longer_patience_resumes_it(store):
    class Falling(FakeEvaluator):
        def evaluate(self, operator):
            self.evaluated.append(operator.key)
            return Outcome("ok", accuracy=1 / (1 + len(self.evaluated)), rung="tiny")

    study = Study.create(store, "study", settings(patience=4), FakeSpace())
    evaluator = Falling()
    assert run(study, evaluator).name == "no_progress"
    assert len(evaluator.evaluated) == 5
    assert store.summary("study").stop_reason == "no_progress"
    longer = Study.load(store, "study", FakeSpace(), patience=6)
    assert run(longer, evaluator).name == "no_progress"
    assert len(evaluator.evaluated) == 7


def test_progress_is_counted_once_for_each_result(store, monkeypatch):
    study = Study.create(store, "study", settings(patience=4), FakeSpace())
    added = []

    def add(self, result):
        added.append(result.accuracy)
        return whole(self, result)

    whole = Advance.add
    monkeypatch.setattr(Advance, "add", add)
    stale = []
    for accuracy in (0.5, 0.6, 0.4, 0.3):
        proposal = study.ask(2)[-1]
        study.tell(proposal.id, Outcome("ok", accuracy=accuracy, rung="tiny"))
        stale += [study.tally().stale, study.tally().stale]
    assert stale == [0, 0, 0, 0, 1, 1, 2, 2]
    assert added == [0.5, 0.6, 0.4, 0.3]


def test_a_stopper_of_the_caller_counts_progress_without_a_patience(store):
    class Falling(FakeEvaluator):
        def evaluate(self, operator):
            self.evaluated.append(operator.key)
            return Outcome("ok", accuracy=1 / (1 + len(self.evaluated)), rung="tiny")

    study = Study.create(store, "study", settings(), FakeSpace())
    evaluator = Falling()
    reason = run(study, evaluator, stopper=Evaluations(8) & NoProgress(4))
    assert reason.name == "no_progress"
    assert len(evaluator.evaluated) == 8


def test_the_state_of_a_study_says_what_further_operators_are_expected_to_improve(store):
    study = Study.create(store, "study", settings(), FakeSpace())
    run(study, FakeEvaluator())
    summary = store.summary("study")
    found = study_json(summary, operators=False)["expected_improvement"]
    assert found["results"] == 10
    assert 0 <= found["improvement"] < 0.5
    assert any(
        "The next 10 operators are expected to improve the best accuracy by" in line
        for line in progress_lines(summary)
    )
