"""What a search method knows of the operators that were proposed."""

from __future__ import annotations

import dataclasses

import pytest

from syno.store import Outcome, Store
from syno.store.objective import ACCURACY, LOSS
from syno.study import History, Study, StudySettings, UniformSampling, run
from syno.study.methods import METHODS

from .fakes import FakeEvaluator, FakeRungs, FakeSpace, fake_ladder


class Recorder(UniformSampling):
    """Draws uniformly and keeps the history of each proposal."""

    def __init__(self, members, seed):
        super().__init__(members, seed)
        self.seen: list[History] = []

    def propose(self, history):
        self.seen.append(history)
        return super().propose(history)


@pytest.fixture
def store():
    with Store.open("sqlite://") as opened:
        yield opened


@pytest.fixture
def seen(monkeypatch):
    """The histories that methods were given, over all studies of a test."""
    found: list[History] = []

    def make(members, seed):
        method = Recorder(members, seed)
        method.seen = found
        return method

    monkeypatch.setitem(METHODS, "recorder", make)
    return found


def settings(**options):
    return StudySettings(**{"evaluations": 10, "seed": 3, "method": "recorder", **options})


def test_a_trial_holds_all_that_an_evaluation_found(store, seen):
    study = Study.create(store, "study", settings(baseline=False), FakeSpace())
    proposal = study.ask(1)[0]
    found = dataclasses.replace(
        FakeEvaluator().baseline(),
        accuracy=0.75,
        params=11,
        seed=5,
        seconds=1.5,
        details={"losses": [2.0, None, 1.0], "loss": 0.5},
    )
    study.tell(proposal.id, found)
    open_one = study.ask(1)[0]
    study.ask(1)
    first, second = seen[-1].entries
    assert (first.key, first.text) == (proposal.operator.key, proposal.operator.text)
    assert (first.ask, first.status, first.value) == (1, "ok", 0.75)
    trial = first.last
    assert first.trials == (trial,)
    assert (trial.rung, trial.status, trial.reason) == (0, "ok", "")
    assert (trial.accuracy, trial.objective, trial.loss) == (0.75, 0.75, 0.5)
    assert trial.losses == (2.0, None, 1.0)
    assert (trial.macs, trial.params) == (64000, 11)
    assert (trial.seed, trial.seconds) == (5, 1.5)
    assert (second.key, second.status, second.last) == (open_one.operator.key, None, None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        trial.accuracy = 1.0


def test_a_history_holds_latencies_and_the_trials_of_the_baseline(store, seen):
    run(Study.create(store, "study", settings(), FakeSpace()), FakeEvaluator())
    history = seen[-1]
    assert [t.latency_ms for t in history.baseline] == [2.0]
    assert [t.latency_ratio for t in history.baseline] == [1.0]
    stored = {e.ask: e for e in store.summary("study").evaluations}
    assert any(stored[entry.ask].latency_ms is not None for entry in history.entries)
    for entry in history.entries:
        expected = stored[entry.ask]
        assert entry.last.latency_ms == expected.latency_ms
        assert entry.last.latency_ratio == expected.latency_ratio
        assert entry.last.macs == expected.macs
        assert entry.last.reason == expected.reason


def test_the_objective_of_text_is_the_loss(store, seen):
    fidelity = {"name": "text", "recipe": {"task": "text"}}
    options = settings(baseline=False, fidelity=fidelity)
    study = Study.create(store, "study", options, FakeSpace())
    study.tell(study.ask(1)[0].id, Outcome("ok", accuracy=0.3, details={"loss": 1.25}))
    study.ask(1)
    assert seen[0].objective == seen[-1].objective == LOSS != ACCURACY
    assert seen[-1].entries[0].last.objective == 1.25


def test_with_a_ladder_an_entry_has_a_trial_at_each_rung(store, seen):
    options = settings(ladder=fake_ladder().to_json(), evaluations=20)
    run(Study.create(store, "study", options, FakeSpace()), FakeRungs())
    history = seen[-1]
    assert {t.rung for t in history.baseline} >= {0, 1}
    reached = [entry for entry in history.entries if len(entry.trials) > 1]
    assert reached
    accuracies = {
        (e.ask, e.rung_index): e.accuracy
        for e in store.summary("study").evaluations
        if e.accuracy is not None
    }
    for entry in history.entries:
        assert [t.rung for t in entry.trials] == list(range(len(entry.trials)))
        assert entry.accuracies == {
            rung: value
            for (ask, rung), value in accuracies.items()
            if ask == entry.ask and rung < len(entry.trials)
        }


@pytest.mark.parametrize("ladder", [None, fake_ladder().to_json()], ids=["plain", "ladder"])
def test_the_history_of_a_resumed_study_is_that_of_an_uninterrupted_one(store, seen, ladder):
    evaluator = FakeEvaluator if ladder is None else FakeRungs
    options = settings(ladder=ladder, evaluations=12)
    run(Study.create(store, "whole", options, FakeSpace()), evaluator())
    whole = list(seen)
    seen.clear()
    study = Study.create(store, "parts", options, FakeSpace())
    study.close()
    for _ in range(200):
        # One proposal for each process: every history is read from the store.
        study = Study.load(store, "parts", FakeSpace())
        if study.tally().evaluated >= 12 and not study.tally().due:
            break
        (proposal,) = study.ask(1)
        rung = () if proposal.rung is None else (proposal.rung,)
        if proposal.is_baseline:
            outcome = evaluator().baseline(*rung)
        else:
            outcome = evaluator().evaluate(proposal.operator, *rung)
        study.tell(proposal.id, outcome)
        study.close()
    assert len(seen) == len(whole) >= 12
    assert seen == whole


class FastAndCheap:
    """Proposes what costs about as many MACs as the fastest operator so far."""

    def __init__(self, members, seed):
        self._members = list(members)

    def propose(self, history):
        left = [c for c in self._members if c.key not in history.keys]
        timed = [t for e in history.entries for t in e.trials if t.latency_ms is not None]
        best = min(timed, key=lambda trial: trial.latency_ms, default=None)
        macs = 0 if best is None else best.macs
        return min(left, key=lambda c: (abs(c.macs - macs), c.key)).operator if left else None


def test_a_custom_method_uses_latencies_and_macs(store, monkeypatch):
    monkeypatch.setitem(METHODS, "fast", FastAndCheap)
    run(Study.create(store, "study", settings(method="fast"), FakeSpace(24)), FakeEvaluator())
    space = {op.key: op.macs() for op in FakeSpace(24).operators}
    found = store.summary("study").evaluations
    for number, evaluation in enumerate(found):
        timed = [e for e in found[:number] if e.latency_ms is not None]
        wanted = min(timed, key=lambda e: e.latency_ms).macs if timed else 0
        proposed = {e.key for e in found[:number]}
        least = min(abs(macs - wanted) for key, macs in space.items() if key not in proposed)
        assert abs(space[evaluation.key] - wanted) == least
    assert len({e.macs for e in found if e.macs is not None}) > 1
