"""What the end of a search counts against the trial that it evaluated: with isolation nothing."""

from __future__ import annotations

import pytest

from syno._util.errors import UserError
from syno.store import Outcome, Store, Worker
from syno.store.records import GIVEN_UP
from syno.study import Study, StudySettings, run
from syno.study.answers import MAX_ATTEMPTS

from .fakes import FakeEvaluator, FakeSpace


@pytest.fixture
def store():
    with Store.open("sqlite://") as store:
        yield store


def settings(**training) -> StudySettings:
    return StudySettings(evaluations=3, seed=5, training=training)


class IsolatedEvaluator(FakeEvaluator):
    is_isolated = True


class Killed(BaseException):
    """Ends a run where it stands."""


class Dying(FakeEvaluator):
    """The process of the search is killed during an evaluation."""

    def baseline(self) -> Outcome:
        raise Killed

    def evaluate(self, operator: object) -> Outcome:
        raise Killed


class IsolatedDying(Dying):
    is_isolated = True


def kill(store: Store, times: int, *, isolated: bool) -> None:
    """Runs, each of which is killed during the evaluation that comes next."""
    for _ in range(times):
        study = Study.load(store, "s", FakeSpace())
        # A killed process tells nobody: the lease stays.
        study.release = study.stop = lambda *_, **__: None  # type: ignore[method-assign]
        study.close = lambda: None  # type: ignore[method-assign]
        with pytest.raises(Killed):
            run(study, IsolatedDying() if isolated else Dying())
        Worker._open.clear()


def answers(store: Store):
    found = store.summary("s")
    return [(e.ask, e.status, e.reason, e.accuracy) for e in (found.baseline, *found.evaluations)]


@pytest.fixture
def undisturbed(store):
    with Store.open("sqlite://") as other:
        run(Study.create(other, "s", settings(), FakeSpace()), FakeEvaluator())
        return answers(other)


@pytest.mark.parametrize("isolated", [True, False])
def test_kills_of_the_search_never_count_against_the_baseline(store, undisturbed, isolated):
    Study.create(store, "s", settings(), FakeSpace())
    kill(store, 3 * MAX_ATTEMPTS, isolated=isolated)
    run(Study.load(store, "s", FakeSpace()), IsolatedEvaluator() if isolated else FakeEvaluator())
    assert answers(store) == undisturbed


def after_the_baseline(store: Store, **training) -> None:
    study = Study.create(store, "s", settings(**training), FakeSpace())
    (baseline,) = study.ask(1)
    study.tell(baseline.id, FakeEvaluator().baseline())
    study.close()


def test_kills_of_the_search_do_not_count_with_isolation(store, undisturbed):
    after_the_baseline(store)
    kill(store, 3 * MAX_ATTEMPTS, isolated=True)
    # Nor do they later, without it.
    kill(store, MAX_ATTEMPTS - 1, isolated=False)
    run(Study.load(store, "s", FakeSpace()), FakeEvaluator())
    assert answers(store) == undisturbed


@pytest.mark.parametrize("most", [None, 2])
def test_without_isolation_an_operator_is_given_up_after_max_attempts(store, most):
    after_the_baseline(store, **({} if most is None else {"max_attempts": most}))
    most = most or MAX_ATTEMPTS
    kill(store, most, isolated=False)
    evaluator = FakeEvaluator()
    run(Study.load(store, "s", FakeSpace()), evaluator)
    (first, *_) = store.summary("s").evaluations
    assert (first.ask, first.status, first.reason) == (1, "error", GIVEN_UP.format(most))
    assert first.key not in evaluator.evaluated


def test_the_number_can_be_raised_while_it_is_open(store, undisturbed):
    after_the_baseline(store, max_attempts=2)
    kill(store, 2, isolated=False)
    run(Study.load(store, "s", FakeSpace(), training={"max_attempts": 3}), FakeEvaluator())
    assert answers(store) == undisturbed


def test_what_was_given_up_is_in_quarantine_and_can_be_released(store, undisturbed):
    after_the_baseline(store)
    kill(store, MAX_ATTEMPTS, isolated=False)
    run(Study.load(store, "s", FakeSpace()), FakeEvaluator())
    found = store.summary("s")
    (record,) = found.quarantined
    assert (record.ask, record.kind, record.failures) == (1, "crash", MAX_ATTEMPTS)
    assert record.reason == f"the process ended in each of {MAX_ATTEMPTS} attempts"
    with pytest.raises(UserError, match="no operator whose id or key begins with 'zz'"):
        store.quarantine.leave(found.study, "zz")
    assert store.quarantine.leave(found.study, record.key[:6]) == [record]
    evaluator = FakeEvaluator()
    run(Study.load(store, "s", FakeSpace()), evaluator)
    assert evaluator.evaluated[0] == record.key
    assert store.summary("s").quarantined == ()
    first = next(row for row in answers(store) if row[0] == 1)
    assert first == undisturbed[1]


@pytest.mark.parametrize(
    "reason", [GIVEN_UP.format(5), "crash: the process was ended by SIGKILL", "hang: no answer"]
)
@pytest.mark.parametrize("which", ["baseline", None])
def test_a_baseline_that_failed_so_is_released_by_its_name(store, undisturbed, reason, which):
    """As earlier versions stored it after five kills."""
    study = Study.create(store, "s", settings(), FakeSpace())
    (baseline,) = study.ask(1)
    study.tell(baseline.id, Outcome("error", reason=reason))
    study.close()
    run(Study.load(store, "s", FakeSpace()), FakeEvaluator())
    found = store.summary("s")
    assert [record.key for record in found.quarantined] == ["baseline"]
    with pytest.raises(UserError, match=r"begins with 'ba'.*\n  in quarantine: baseline"):
        store.quarantine.leave(found.study, "ba")  # it may be the start of an operator's key
    store.quarantine.leave(found.study, which)
    evaluator = FakeEvaluator()
    run(Study.load(store, "s", FakeSpace()), evaluator)
    assert evaluator.evaluated == []
    assert answers(store) == undisturbed
    assert store.summary("s").quarantined == ()


def test_a_baseline_that_crashes_once_is_evaluated_once_more(store, undisturbed):
    class Once(IsolatedEvaluator):
        crashed = False

        def baseline(self):
            if self.crashed:
                return super().baseline()
            self.crashed = True
            return Outcome("error", reason="crash: SIGKILL", details={"failure": "crash"})

    run(Study.create(store, "s", settings(), FakeSpace()), Once())
    assert answers(store) == undisturbed
