"""The state of a study, kept up by new events, is that of reading the whole study again.

Random sequences of what happens to a study: proposals, answers, failures, quarantine, answers of
workers that lost their lease, trainings that are repeated, rungs, and readers that see some of it
later than others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
from typing import Any

import pytest

from syno._util.errors import UserError
from syno.store import Outcome, Store, StudyState, Worker
from syno.store.check import Finding, findings
from syno.store.overview import since_progress
from syno.store.records import ERROR, MOST_FAILURES
from syno.study import Study, StudySettings
from syno.study.answers import Answers
from syno.study.fidelity.promotions import Promotions
from syno.study.live_history import LiveHistory
from syno.study.methods.history import History
from syno.study.results_since_progress import ResultsSinceProgress
from syno.study.waiting_list import WaitingList

from .fakes import FakeEvaluator, FakeOperator, FakeRungs, FakeSpace, fake_ladder
from .read_again import history_of, read_again, without_attempts

STEPS = 60
KINDS = ("default", "ladder", "loss", "several")


def settings(kind: str) -> StudySettings:
    text = {"name": "text", "recipe": {"task": "text"}}
    given = {
        "default": {},
        "ladder": {"ladder": fake_ladder().to_json()},
        "loss": {"fidelity": text},
        "several": {"objective": ("accuracy", "macs"), "ladder": fake_ladder().to_json()},
    }[kind]
    return StudySettings(evaluations=1000, seed=5, patience=3, **given)


class ImpossibleError(Exception):
    """It cannot happen now."""


class Reader:
    """Follows a study, now and then, with all that is made of its state."""

    def __init__(self, study: Study) -> None:
        self.state = StudyState(study.record)
        self.live = LiveHistory(self.state, study.objectives, study.ladder)
        self.progress = ResultsSinceProgress(self.state, study.objectives)
        self.queue = WaitingList(self.state)

    def follow(self, store: Store) -> None:
        store.follow(self.state)
        self.progress.count()
        if self.state.last is not None:
            self.live.history(self.state.last + 1)
        self.queue.first()


class Happenings:
    """A study with workers, to which one random thing after the other happens."""

    def __init__(self, store: Store, kind: str, seed: int) -> None:
        self.store, self.random = store, random.Random(f"{kind} {seed}")
        self.study = Study.create(store, "study", settings(kind), FakeSpace())
        self.record = self.study.record
        self.study.driver = store.presence.drive(self.record, self.study.worker)
        self.evaluator = FakeRungs() if self.study.ladder else FakeEvaluator()
        self.workers = [Worker() for _ in range(4)]
        self.held: list[tuple[Worker, object]] = []
        self.done: set[str] = set()

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.study.close()

    def step(self) -> None:
        """Let one thing happen that can happen now."""
        while True:
            (found,) = self.random.choices(*zip(*self.weights().items(), strict=True))
            with contextlib.suppress(UserError, ImpossibleError):
                found()
                self.done.add(found.__name__)
                return

    def weights(self) -> dict[Any, int]:
        return {
            self.propose: 6,
            self.take: 6,
            self.answer: 7,
            self.answer_late: 1,
            self.fail: 2,
            self.give_up: 1,
            self.release: 1,
            self.enqueue: 1,
            self.evaluate_again: 2,
            self.note: 1,
        }

    def pick(self, things: list) -> Any:
        if not things:
            raise ImpossibleError
        return self.random.choice(things)

    def propose(self) -> None:
        if self.study.propose() is None:
            raise ImpossibleError

    def take(self) -> None:
        worker = self.random.choice(self.workers)
        found = self.store.lease(self.record, worker.name)
        if found is None:
            raise ImpossibleError
        self.held.append((worker, found))

    def outcome(self, record, worker=None) -> Outcome:
        operator = None if record.text is None else FakeOperator(record.text)
        rung = (record.rung_index,) if self.study.ladder else ()
        made = self.evaluator.baseline(*rung)
        if operator is not None:
            made = self.evaluator.evaluate(operator, *rung)
        if made.accuracy is not None:
            shift = 0.3 if worker is self.workers[0] else 0.0  # this one lies
            details = {"loss": 2.0 - made.accuracy, "by_seed": {"0": made.accuracy}}
            made = dataclasses.replace(made, accuracy=made.accuracy + shift, details=details)
        return made

    def answer(self) -> None:
        worker, record = self.pick(self.held)
        self.held.remove((worker, record))
        outcome = self.outcome(record, worker)
        environment = self.study._environment
        self.store.tell(record.id, outcome, environment, worker.name, record.token)

    def answer_late(self) -> None:
        """Another worker has the lease meanwhile: the answer is dropped."""
        worker, record = self.pick(self.held)
        self.store.release(record.id, worker.name)
        self.take()
        outcome = self.outcome(record, worker)
        try:
            environment = self.study._environment
            self.store.tell(record.id, outcome, environment, worker.name, record.token)
        except UserError as error:
            self.study.drop(self.study.proposal(record, 0), error, outcome)

    def fail(self) -> None:
        worker, record = self.pick([each for each in self.held if each[1].text is not None])
        count = self.store.quarantine.add(record.id, "crash", "crash: SIGSEGV")
        if count >= MOST_FAILURES and self.random.random() < 0.7:
            self.held.remove((worker, record))
            outcome = Outcome(ERROR, reason="crash: it is in quarantine")
            self.store.tell(record.id, outcome, self.study._environment, worker.name, record.token)

    def give_up(self) -> None:
        worker, record = self.pick(self.held)
        self.held.remove((worker, record))
        outcome = Outcome(ERROR, reason="the process ended in each of 5 attempts")
        self.store.tell(record.id, outcome, self.study._environment, worker.name, record.token)

    def release(self) -> None:
        keys = [found.key for found in self.store.quarantine.of(self.record)]
        self.store.quarantine.leave(self.record, self.random.choice([None, *keys]))

    def enqueue(self) -> None:
        self.study.enqueue(FakeOperator(f"operator {self.random.randrange(100)}"))

    def evaluate_again(self) -> None:
        """A further evaluation of an answered proposal: with another seed, on the test split, or
        in INT8."""
        done = [p for p in self.store.proposals(self.record) if not p.is_open]
        record = self.pick(done)
        seed = self.random.randrange(1, 100)
        change = self.random.choice(
            ({"seed": seed}, {"split": "test"}, {"recipe": {"precision": "int8", "seed": seed}})
        )
        outcome = dataclasses.replace(self.outcome(record), **change)
        self.store.add_evaluation(self.record, record.ask, outcome, self.study._environment)

    def note(self) -> None:
        self.store.append_event(self.record, "resumed", {"evaluations": 1000})


def check_equal(store: Store, study: Study, reader: Reader) -> None:
    state, whole = reader.state, read_again(store, study.record)
    assert state.events == whole.events
    assert state.proposals == without_attempts(whole.proposals)
    assert state.results == whole.results
    assert state.evaluations == whole.evaluations
    assert state.baselines == list(store.summary(study.record).baselines)
    assert state.quarantined == store.quarantine.of(study.record)
    opened = [p for p in whole.proposals if p.is_open]
    assert state.opened == {p.ask for p in opened}
    operators = [p for p in whole.proposals if p.kind == "operator"]
    assert state.waiting == {p.ask for p in operators if p.status is None}
    assert state.higher == {p.ask for p in opened if p.rung_index > 0 or p.kind == "baseline"}
    completed = [p for p in operators if p.status is not None]
    assert state.completed == len(completed)
    assert state.evaluated == sum(p.is_evaluated for p in completed)
    assert reader.progress.count() == since_progress(store.summary(study.record))
    if state.last is None:
        return
    number = state.last + 1
    assert reader.live.history(number) == history_of(study, number, whole)
    proposed = {p.key for p in whole.proposals}
    enqueued = [e.data for e in whole.events if e.kind == "enqueued"]
    left = [data["text"] for data in enqueued if data["key"] not in proposed]
    assert reader.queue.first() == (left[0] if left else None)
    assert study.weights_needed() == Answers.weights_needed(study)
    assert study.checkpoints_needed() == Answers.checkpoints_needed(study)
    if study.ladder is not None:
        study.follow()
        expected = Promotions(study.ladder, whole.proposals, whole.results).due()
        assert study._standings.due() == expected


def differences(store: Store) -> list[Finding]:
    """Where the tables are not what the log says."""
    with store.database.snapshot() as connection:
        found = findings(connection)
    # The keys of fake operators do not follow from their texts.
    return [each for each in found if not each.where.startswith("table operator")]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_that_of_reading_everything_again(kind, seed):
    with Store.open("sqlite://") as store:
        happens = Happenings(store, kind, seed)
        readers = [Reader(happens.study) for _ in range(2)]
        for number in range(STEPS):
            happens.step()
            readers[0].follow(store)
            if number % 9 == 0:
                readers[1].follow(store)  # more than one event at a time
            if number % 7 == 0:
                check_equal(store, happens.study, readers[0])
        for reader in readers:
            reader.follow(store)
            check_equal(store, happens.study, reader)
        assert len(happens.done) >= 8
        assert differences(store) == []
        happens.close()


def test_many_proposals_are_read_at_once(monkeypatch):
    monkeypatch.setattr("syno.store.state._MOST_READ", 3)
    monkeypatch.setattr("syno.store.state._MOST_SINGLE", 2)
    with Store.open("sqlite://") as store:
        happens = Happenings(store, "default", 7)
        reader = Reader(happens.study)
        for number in range(STEPS):
            happens.step()
            if number % 11 == 0:
                reader.follow(store)
                check_equal(store, happens.study, reader)
        happens.close()


def test_a_history_is_not_changed_by_later_results():
    with Store.open("sqlite://") as store:
        study = Study.create(store, "study", settings("default"), FakeSpace())
        reader = Reader(study)
        study.ask(2)
        store.follow(reader.state)
        before = reader.live.history(2)
        assert [entry.status for entry in before.entries] == [None]
        for record in store.proposals(study.record):
            study.tell(record.id, Outcome("ok", accuracy=0.5))
        store.follow(reader.state)
        after = reader.live.history(2)
        assert [entry.status for entry in before.entries] == [None]
        assert [entry.status for entry in after.entries] == ["ok"]
        assert isinstance(after, History)
        assert after.moment.follows(before.moment)
        assert not before.moment.follows(after.moment)
        assert after.moment.changed(before.moment) == {0}
        study.close()


def test_a_reading_that_fails_leaves_the_state_as_it_was(monkeypatch):
    with Store.open("sqlite://") as store:
        study = Study.create(store, "study", settings("default"), FakeSpace())
        reader = Reader(study)
        reader.follow(store)
        study.ask(3)

        def lost(*_):
            raise UserError("the database cannot be reached")

        seen = reader.state.seen
        with monkeypatch.context() as patched:
            patched.setattr("syno.store.state.evaluation_rows", lost)
            with pytest.raises(UserError):
                store.follow(reader.state)
        assert (reader.state.seen, reader.state.proposals) == (seen, [])
        reader.follow(store)
        check_equal(store, study, reader)
        study.close()
