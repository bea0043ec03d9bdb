"""The whole way on real images: compose, verify, train, measure, store, resume."""

from __future__ import annotations

import pytest

from syno import SpaceOptions, UserError
from syno.store import Store
from syno.study import StudyObserver
from syno.study.search import resume, search

EVALUATIONS = 3


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(tmp_path_factory.mktemp("search") / "runs.db")


class StopAfter(StudyObserver):
    """Ends the run like Ctrl-C, in the middle of an evaluation."""

    def __init__(self, asks: int) -> None:
        self._asks = asks

    def on_ask(self, proposal):
        if proposal.ask == self._asks:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def summary(path):
    """A search that was interrupted at its second operator and resumed."""
    with pytest.raises(KeyboardInterrupt):
        search(
            "resnet-small",
            "digits",
            model_options={"width": 4, "stages": 2},
            evaluations=EVALUATIONS,
            method="diverse",
            space=SpaceOptions(max_nodes=8000),
            seed=1,
            store=path,
            name="digits",
            observer=StopAfter(2),
        )
    with Store.open(path, read_only=True) as store:
        before = store.summary("digits")
    assert [e.ask for e in before.evaluations] == [1]
    after = resume(path)
    assert after.evaluations[:1] == before.evaluations
    assert after.baseline == before.baseline
    return after


def test_a_search_trains_distinct_operators_and_keeps_everything(summary):
    assert summary.stop_reason == "evaluations"
    assert len(summary.trained) >= EVALUATIONS - 1
    keys = [e.key for e in summary.evaluations]
    assert len(set(keys)) == len(keys)
    for evaluation in summary.trained:
        assert 0 < evaluation.accuracy <= 1
        assert evaluation.latency_ms > 0
        assert evaluation.latency_ratio > 0
        assert evaluation.source_hash
        assert evaluation.macs > 0
        assert evaluation.rung == "digits"
        assert evaluation.environment.rules
        assert "torch" in evaluation.environment.libraries


def test_the_baseline_is_good_and_operators_learn(summary):
    assert summary.baseline.accuracy > 0.8
    assert max(e.accuracy for e in summary.trained) > 0.5


def test_operators_cost_no_more_than_the_layers_they_replace(summary):
    assert all(e.macs <= summary.baseline.macs for e in summary.trained)


def test_the_enumeration_says_what_it_rejected(summary):
    assert sum(summary.rejections.values()) > 0
    (space,) = [e.data for e in summary.events if e.kind == "space"]
    assert space["keys"] >= len(summary.evaluations)


def test_a_finished_search_is_resumed_for_more(path, summary):
    more = resume(path, "digits", evaluations=EVALUATIONS + 1)
    assert more.evaluations[: len(summary.evaluations)] == summary.evaluations
    assert len(more.evaluations) > len(summary.evaluations)


def test_a_study_is_not_resumed_with_other_data(path, summary, tmp_path):
    with Store.open(path) as store:
        settings = dict(summary.study.settings, fingerprint="another")
        store.create_study("moved", specification=("k", {}), settings=settings, seed=1)
    with pytest.raises(UserError, match="is not what study 'moved' was started with"):
        resume(path, "moved")
