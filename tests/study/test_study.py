"""Ask and tell, the loop, resuming: with a fake space and a fake evaluator."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from syno._util.errors import UserError
from syno.store import Outcome, Store, Worker, log
from syno.study import Proposal, StopReason, Study, StudyObserver, StudySettings, run
from syno.study.answers import MAX_ATTEMPTS
from syno.study.study import running_seconds, settings_of

from .fakes import FakeEvaluator, FakeSpace


@pytest.fixture
def store():
    with Store.open("sqlite://") as store:
        yield store


def settings(**options) -> StudySettings:
    return StudySettings(**{"evaluations": 10, "seed": 5, **options})


def answers(store: Store, name: str = "study") -> list[tuple[object, ...]]:
    """All that a run decides, without ids and times."""
    summary = store.summary(name)
    found = [summary.baseline, *summary.evaluations] if summary.baseline else summary.evaluations
    return [(e.ask, e.key, e.status, e.accuracy, e.latency_ratio) for e in found]


def signature(rows: list[tuple[object, ...]]) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:8]


# One number for (options, seed, fake answers): it changes when the search behaves differently.
SIGNATURES = {
    ("uniform", 0): "f5f702f2",
    ("uniform", 1): "26b43bf2",
    ("diverse", 0): "995c4394",
    ("diverse", 1): "f99748ec",
}


@pytest.mark.parametrize(("method", "seed"), SIGNATURES)
def test_the_signature_of_the_search(store, method, seed):
    study = Study.create(store, "study", settings(method=method, seed=seed), FakeSpace())
    run(study, FakeEvaluator())
    assert signature(answers(store)) == SIGNATURES[method, seed]


def test_the_loop_evaluates_the_baseline_first_and_then_as_many_as_asked(store):
    study = Study.create(store, "study", settings(evaluations=10), FakeSpace())
    reason = run(study, FakeEvaluator())
    assert reason == StopReason("evaluations", "10 operators were evaluated, as requested")
    summary = store.summary("study")
    assert summary.baseline is not None
    assert summary.baseline.accuracy == 0.9
    counted = [e for e in summary.evaluations if e.status != "rejected"]
    assert len(counted) == 10
    assert len({e.key for e in summary.evaluations}) == len(summary.evaluations)
    assert [e.ask for e in summary.evaluations] == list(range(1, len(summary.evaluations) + 1))
    assert summary.stop_reason == "evaluations"
    assert summary.rejections == {"pooling": 17, "window_ratio": 4}
    assert summary.open_asks == ()


class BaselineThatFails(FakeEvaluator):
    def __init__(self, status, reason):
        super().__init__()
        self._outcome = Outcome(status, reason=reason)

    def baseline(self):
        return self._outcome


@pytest.mark.parametrize(
    ("status", "reason", "cure"),
    [
        ("rejected", "loss_above_chance: the loss is 9 after epoch 1", "with a fidelity whose"),
        ("timeout", "deadline: the deadline of 5 s passed", "with a longer --deadline-s"),
    ],
)
def test_a_study_stops_at_once_when_the_baseline_does_not_learn(store, status, reason, cure):
    study = Study.create(store, "study", settings(), FakeSpace())
    evaluator = BaselineThatFails(status, reason)
    stopped = run(study, evaluator)
    assert stopped.name == "baseline"
    assert stopped.text.startswith(f"the training of the baseline network failed ({reason})")
    assert cure in stopped.text
    assert evaluator.evaluated == []
    # A resumed study does not train operators either.
    resumed = Study.load(store, "study", FakeSpace(), evaluations=30)
    assert run(resumed, evaluator) == stopped
    assert evaluator.evaluated == []


def test_a_study_goes_on_when_the_baseline_crashes(store):
    study = Study.create(store, "study", settings(), FakeSpace())
    reason = run(study, BaselineThatFails("error", "out of memory"))
    assert reason.name == "evaluations"


def test_the_loop_stops_when_the_space_is_exhausted(store):
    study = Study.create(store, "study", settings(evaluations=1000), FakeSpace(12))
    reason = run(study, FakeEvaluator())
    assert reason == StopReason("exhausted", "all 12 operators of the space were proposed")
    assert len(store.summary("study").evaluations) == 12


def test_the_loop_stops_when_the_time_is_up_and_resume_may_give_more(store):
    study = Study.create(store, "study", settings(seconds=1e-9), FakeSpace())
    assert run(study, FakeEvaluator()).name == "seconds"
    assert answers(store) == []
    again = Study.load(store, "study", FakeSpace(), seconds=1000.0)
    assert run(again, FakeEvaluator()).name == "evaluations"


def test_ask_and_tell_serve_a_trainer_of_the_users_own(store):
    study = Study.create(store, "study", settings(baseline=False), FakeSpace())
    first = study.ask(3)
    assert [p.ask for p in first] == [1, 2, 3]
    study.tell(first[1].id, Outcome("ok", accuracy=0.5))
    more = study.ask(2)
    assert [p.ask for p in more] == [4, 5]
    assert len({p.operator.key for p in [*first, *more]}) == 5
    with pytest.raises(UserError, match="has a result already"):
        study.tell(first[1].id, Outcome("ok", accuracy=0.6))
    assert [p.status for p in store.proposals(study.record)] == [None, "ok", None, None, None]


def test_a_proposal_reads_only_the_new_events_and_what_they_name(store, monkeypatch):
    study = Study.create(store, "study", settings(), FakeSpace())
    study.ask(1)
    seen, read, named = study.state.seen, [], []
    reading_events, reading_proposals = log.events, log.proposals

    def events(connection, study, after=0):
        found = reading_events(connection, study, after)
        read.extend(event.sequence for event in found)
        return found

    def proposals(connection, study, identities=None):
        named.append(identities)
        return reading_proposals(connection, study, identities)

    monkeypatch.setattr(log, "events", events)
    monkeypatch.setattr(log, "proposals", proposals)
    for _ in range(5):
        (proposal,) = study.ask(1)
        study.tell(proposal.id, Outcome("ok", accuracy=0.5))
        study.tally()
    assert read == list(range(seen + 1, study.state.seen + 1))
    assert max(len(identities) for identities in named) <= 2


def test_the_order_of_answers_does_not_change_uniform_proposals(store):
    texts = []
    for name, order in (("a", 1), ("b", -1)):
        study = Study.create(store, name, settings(baseline=False), FakeSpace())
        batch = study.ask(4)
        for proposal in batch[::order]:
            study.tell(proposal.id, Outcome("ok", accuracy=0.5))
        texts.append([p.operator.text for p in [*batch, *study.ask(4)]])
    assert texts[0] == texts[1]


@pytest.mark.parametrize("method", ["uniform", "diverse"])
def test_a_study_resumed_after_every_evaluation_is_the_same_as_one_run(store, method):
    options = settings(method=method, evaluations=12)
    run(Study.create(store, "whole", options, FakeSpace()), FakeEvaluator())
    study = Study.create(store, "parts", options, FakeSpace())
    for target in range(1, 13):
        evaluator = FakeEvaluator()
        study.close()
        study = Study.load(store, "parts", FakeSpace(), evaluations=target)
        run(study, evaluator)
    assert answers(store, "parts") == answers(store, "whole")


class Interrupted(FakeEvaluator):
    """Ends like a process that is stopped, at one evaluation."""

    def __init__(self, at: int, error: BaseException) -> None:
        super().__init__()
        self._at, self._error = at, error

    def evaluate(self, operator):
        if len(self.evaluated) == self._at:
            raise self._error
        return super().evaluate(operator)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), UserError("the data went away")])
def test_an_interrupted_evaluation_is_repeated_under_the_same_proposal(store, error):
    run(Study.create(store, "whole", settings(), FakeSpace()), FakeEvaluator())
    study = Study.create(store, "cut", settings(), FakeSpace())
    with pytest.raises(type(error)):
        run(study, Interrupted(4, error))
    open_ask = store.summary("cut").open_asks
    assert open_ask == (5,)
    identity = store.proposals(study.record)[-1].id
    seen: list[Proposal] = []

    class Watch(StudyObserver):
        def on_ask(self, proposal):
            seen.append(proposal)

    run(Study.load(store, "cut", FakeSpace()), FakeEvaluator(), observer=Watch())
    assert (seen[0].id, seen[0].ask) == (identity, 5)
    assert answers(store, "cut") == answers(store, "whole")


def test_an_interrupt_from_the_keyboard_is_the_reason_in_the_store(store):
    study = Study.create(store, "study", settings(), FakeSpace())
    with pytest.raises(KeyboardInterrupt):
        run(study, Interrupted(2, KeyboardInterrupt()))
    assert store.summary("study").stop_reason == "interrupted"


def test_a_proposal_that_ends_its_process_each_time_becomes_an_error(store):
    Study.create(store, "study", settings(baseline=False), FakeSpace()).ask(1)
    for attempt in range(2, MAX_ATTEMPTS + 1):
        # Each of these objects goes away with a lease, as a killed process does.
        study = Study.load(store, "study", FakeSpace())
        _forget_workers()
        (proposal,) = study.ask(1)
        assert (proposal.ask, proposal.attempts) == (1, attempt)
    _forget_workers()
    (following,) = Study.load(store, "study", FakeSpace()).ask(1)
    assert following.ask == 2
    (failed,) = store.summary("study").evaluations
    assert failed.status == "error"
    assert failed.reason == f"the process ended in each of {MAX_ATTEMPTS} attempts"


def _forget_workers() -> None:
    Worker._open.clear()


def test_a_space_that_changed_is_refused_and_both_are_described(store):
    Study.create(store, "study", settings(), FakeSpace(100))
    message = "had 100 operators (rules 1), now it has 99 different ones (rules 1)"
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        Study.load(store, "study", FakeSpace(99))
    assert "start a new study" in str(caught.value)


def test_resume_changes_the_limits_from_then_on(store):
    Study.create(store, "study", settings(evaluations=10), FakeSpace())
    Study.load(store, "study", FakeSpace(), evaluations=20)
    again = Study.load(store, "study", FakeSpace())
    assert again.settings == settings(evaluations=20)
    record = store.study("study")
    assert settings_of(record, store.events(record)).evaluations == 20
    assert StudySettings.from_json(record.settings).evaluations == 10


def test_a_search_in_which_nothing_works_ends_early_and_may_try_again(store):
    class Broken(FakeEvaluator):
        def evaluate(self, operator):
            return Outcome("error", reason="no memory", rung="16px")

    study = Study.create(store, "study", settings(evaluations=50), FakeSpace())
    reason = run(study, Broken())
    assert reason == StopReason("errors", "the last 10 operators all ended in an error")
    assert run(Study.load(store, "study", FakeSpace()), FakeEvaluator()).name == "evaluations"


def test_the_time_of_a_study_is_that_of_its_runs(store):
    class At:
        def __init__(self, kind: str, second: int) -> None:
            self.kind, self.created = kind, f"2026-01-01T00:00:{second:02}.000000Z"

    events = [At("space", 0), At("started", 1), At("told", 4), At("resumed", 30), At("told", 37)]
    assert running_seconds(events) == 3 + 7
    assert running_seconds(events[:1]) == 0


def test_the_observer_sees_every_step(store):
    seen: list[str] = []

    class Watch(StudyObserver):
        def on_start(self, study, settings, tally):
            seen.append(f"start {study.name} {tally.evaluated}/{settings.evaluations}")

        def on_ask(self, proposal):
            seen.append(f"ask {proposal.ask} {proposal.kind}")

        def on_tell(self, proposal, outcome, tally):
            seen.append(f"tell {proposal.ask} {outcome.status} {tally.evaluated}")

        def on_stop(self, reason):
            seen.append(f"stop {reason.name}")

    study = Study.create(store, "study", settings(evaluations=1, seed=0), FakeSpace())
    run(study, FakeEvaluator(), observer=Watch())
    assert seen[:4] == ["start study 0/1", "ask 0 baseline", "tell 0 ok 0", "ask 1 operator"]
    assert seen[-1] == "stop evaluations"
    assert re.fullmatch(r"tell \d+ (ok|error) 1", seen[-2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluations": 0}, "'evaluations' is an integer of at least 1, got 0"),
        ({"seconds": -1.0}, "'seconds' is a number above 0, got -1"),
        ({"seed": -1}, r"'seed' is an integer of at least 0, got -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        StudySettings(**options)


def test_settings_of_a_newer_syno_are_refused_by_name():
    content = {**StudySettings().to_json(), "telepathy": True}
    with pytest.raises(UserError, match="does not know: telepathy"):
        StudySettings.from_json(content)


def test_settings_come_back_from_json():
    made = StudySettings(model="m", fidelity={"epochs": 3}, seconds=2.0)
    assert StudySettings.from_json(json.loads(json.dumps(made.to_json()))) == made
