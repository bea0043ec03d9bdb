"""Operators that crash, hang or run out of memory: once more, then quarantine."""

from __future__ import annotations

import pytest

from syno.store import Outcome, Store
from syno.study import Study, StudyObserver, StudySettings, run
from syno.study.evaluate.failures import failure_kind

from .fakes import FakeEvaluator, FakeSpace

CRASH = Outcome("error", reason="crash: SIGSEGV", details={"failure": "crash"})


@pytest.fixture
def store():
    with Store.open("sqlite://") as store:
        yield store


class Failing(FakeEvaluator):
    """The evaluations with these numbers, from 0, end in `outcome`."""

    def __init__(self, *numbers: int, outcome: Outcome = CRASH) -> None:
        super().__init__()
        self._numbers, self._outcome = numbers, outcome

    def evaluate(self, operator):
        number = len(self.evaluated)
        found = super().evaluate(operator)
        return self._outcome if number in self._numbers else found


def begun(store, evaluations=8) -> Study:
    return Study.create(store, "s", StudySettings(evaluations=evaluations, seed=5), FakeSpace())


def test_a_failure_that_does_not_come_again_leaves_no_trace_in_the_answers(store):
    seen = []

    class Watch(StudyObserver):
        def on_failure(self, proposal, outcome):
            seen.append((proposal.ask, outcome.reason))

    evaluator = Failing(3)
    run(begun(store), evaluator, observer=Watch())
    assert seen == [(4, "crash: SIGSEGV")]
    assert evaluator.evaluated[3] == evaluator.evaluated[4]
    found = store.summary("s")
    assert "crash" not in {e.reason for e in found.evaluations}
    assert found.quarantined == ()

    whole = Study.create(store, "whole", StudySettings(evaluations=8, seed=5), FakeSpace())
    run(whole, FakeEvaluator())
    keep = lambda summary: [(e.ask, e.key, e.status) for e in summary.evaluations]  # noqa: E731
    assert keep(found) == keep(store.summary("whole"))


def test_an_operator_that_fails_twice_is_stored_with_its_reason_and_quarantined(store):
    evaluator = Failing(3, 4)
    run(begun(store), evaluator)
    found = store.summary("s")
    key = evaluator.evaluated[3]
    (record,) = found.quarantined
    assert (record.key, record.ask, record.failures) == (key, 4, 2)
    (failed,) = [e for e in found.evaluations if e.key == key]
    assert failed.reason == "crash: SIGSEGV; it failed 2 times and is in quarantine"
    assert evaluator.evaluated.count(key) == 2
    assert found.stop_reason == "evaluations"


def test_a_quarantined_operator_is_not_evaluated_again_after_a_kill(store):
    """The run is killed after the second failure was counted, before the answer was told."""
    study = begun(store)
    asked = study.ask(3)[-1]
    for _ in range(2):
        study.failed(asked.id, "crash", "crash: SIGSEGV")
    study.close()
    evaluator = FakeEvaluator()
    run(Study.load(store, "s", FakeSpace()), evaluator)
    assert asked.operator.key not in evaluator.evaluated
    failed = next(e for e in store.summary("s").evaluations if e.ask == asked.ask)
    assert (failed.status, failed.reason) == (
        "error",
        "crash: SIGSEGV; it failed 2 times and is in quarantine",
    )


def test_a_failure_before_a_kill_counts(store):
    study = begun(store)
    asked = study.ask(3)[-1]
    assert not study.failed(asked.id, "crash", "crash: SIGSEGV")
    study.close()

    class Always(FakeEvaluator):
        def evaluate(self, operator):
            found = super().evaluate(operator)
            return CRASH if operator.key == asked.operator.key else found

    evaluator = Always()
    run(Study.load(store, "s", FakeSpace()), evaluator)
    assert evaluator.evaluated.count(asked.operator.key) == 1


class Stubborn:
    """A method that comes back to the operator of ask 1 at every third ask."""

    def __init__(self, members):
        self._members = list(members)

    def propose(self, history):
        number = 0 if history.ask % 3 == 1 else history.ask
        return self._members[number].operator


def test_a_method_that_comes_back_to_it_is_answered_without_an_evaluation(store, monkeypatch):
    monkeypatch.setitem(
        __import__("syno.study.methods", fromlist=["METHODS"]).METHODS,
        "stubborn",
        lambda members, seed: Stubborn(members),
    )
    settings = StudySettings(evaluations=6, seed=5, method="stubborn")
    evaluator = Failing(0, 1)
    run(Study.create(store, "s", settings, FakeSpace()), evaluator)
    found = store.summary("s")
    key = evaluator.evaluated[0]
    same = [e for e in found.evaluations if e.key == key]
    assert [(e.ask, e.status) for e in same] == [(1, "error"), (4, "rejected"), (7, "rejected")]
    assert same[1].reason == "it is in quarantine: crash: SIGSEGV"
    assert evaluator.evaluated.count(key) == 2


def test_a_released_operator_is_evaluated_next_and_under_its_number(store):
    first = Failing(3, 4)
    run(begun(store), first)
    before = store.summary("s")
    (record,) = store.quarantine.leave(before.study, first.evaluated[3][:6])
    second = FakeEvaluator()
    run(Study.load(store, "s", FakeSpace()), second)
    assert second.evaluated == [record.key]
    after = store.summary("s")
    assert after.quarantined == ()
    assert [e for e in after.evaluations if e.key != record.key] == [
        e for e in before.evaluations if e.key != record.key
    ]


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (CRASH, "crash"),
        (Outcome("timeout", reason="hang: x", details={"failure": "hang"}), "hang"),
        (Outcome("error", reason="out_of_memory: std::bad_alloc"), "out_of_memory"),
        (Outcome("error", reason="MemoryError: "), "out_of_memory"),
        (
            Outcome("error", reason="RuntimeError: DefaultCPUAllocator: can't allocate memory"),
            "out_of_memory",
        ),
        (Outcome("error", reason="runtime_error: shapes differ"), None),
        (Outcome("timeout", reason="deadline: the deadline of 3 s passed"), None),
        (Outcome("rejected", reason="non_finite_loss: the loss is nan"), None),
        (Outcome("ok", accuracy=0.5), None),
    ],
)
def test_only_what_may_have_come_from_outside_is_tried_again(outcome, kind):
    assert failure_kind(outcome) == kind


def test_a_baseline_that_crashes_is_an_answer_like_others(store):
    class Broken(FakeEvaluator):
        def baseline(self):
            return CRASH

    run(begun(store, evaluations=2), Broken())
    assert store.summary("s").baseline.reason == "crash: SIGSEGV"
