"""A search that was suspended for so long that another process took its proposal over."""

from __future__ import annotations

import pytest

from syno.store import Outcome, Store, Worker
from syno.study import Study, StudyObserver, StudySettings, run

from .fakes import FakeEvaluator, FakeRungs, FakeSpace, fake_ladder

CRASH = Outcome("error", reason="crash: SIGSEGV", details={"failure": "crash"})


@pytest.fixture
def store():
    with Store.open("sqlite://") as store:
        yield store


def settings(ladder: bool) -> StudySettings:
    content = fake_ladder().to_json() if ladder else None
    return StudySettings(evaluations=6, seed=5, ladder=content)


def results(store: Store):
    record = store.study()
    return sorted((r.ask, r.rung_index, r.status, r.accuracy) for r in store.rung_results(record))


class Suspended:
    """At the evaluation with this number, its lease is void, and another study takes over: it
    answers at once, or has not answered when this one is done."""

    def __init__(self, inner, study, number, *, answers, outcome=None) -> None:
        self._inner, self._study, self._number = inner, study, number
        self._answers, self._outcome = answers, outcome
        self._count = 0
        self.taken = None

    def baseline(self, *rung):
        return self._inner.baseline(*rung)

    def evaluate(self, operator, *rung):
        found = self._inner.evaluate(operator, *rung)
        self._count += 1
        if self._count != self._number:
            return found
        Worker._open.discard(self._study.worker)
        self.other = Study.load(self._study.store, None, FakeSpace())
        (self.taken,) = self.other.ask(1)
        assert self.taken.operator.key == operator.key
        Worker._open.add(self._study.worker)
        if self._answers:
            self.other.tell(self.taken.id, found)
        return self._outcome or found


@pytest.mark.parametrize("ladder", [False, True])
@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("outcome", [None, CRASH])
def test_its_late_answer_is_dropped_and_it_goes_on(store, ladder, answers, outcome):
    make = FakeRungs if ladder else FakeEvaluator
    with Store.open("sqlite://") as whole:
        run(Study.create(whole, "s", settings(ladder), FakeSpace()), make())
        expected = results(whole)

    study = Study.create(store, "s", settings(ladder), FakeSpace())
    notes = []

    class Watch(StudyObserver):
        def on_note(self, text):
            notes.append(text)
            if not answers and evaluator.taken is not None:  # the other one comes to its end
                operator = evaluator.taken.operator
                rung = () if evaluator.taken.rung is None else (evaluator.taken.rung,)
                evaluator.other.tell(evaluator.taken.id, make().evaluate(operator, *rung))
                evaluator.other.close()

    evaluator = Suspended(make(), study, 4, answers=answers, outcome=outcome)
    assert run(study, evaluator, observer=Watch()).name == "evaluations"
    assert results(store) == expected
    assert store.quarantine.of(store.study()) == []
    dropped = [e for e in store.events(store.study()) if e.kind == "dropped"]
    assert [e.data["proposal"] for e in dropped] == [evaluator.taken.id]
    assert "the result does not count: proposal" in notes[0]
