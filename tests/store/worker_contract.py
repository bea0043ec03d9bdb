"""What every backend does for drivers and workers: subclass and give the fixture `url`."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from syno._util.errors import UserError
from syno.store import (
    AlreadyCompletedError,
    DriverLostError,
    LeaseLostError,
    LimitReachedError,
    Store,
    Worker,
    lease,
)

from .sample import ENVIRONMENT, TRAINED, make_study

ELSEWHERE = "another:1:1:1"  # a worker on another machine, of which only heartbeats are known


class WorkerContract:
    @pytest.fixture
    def store(self, url):
        with Store.open(url) as store:
            yield store

    @pytest.fixture
    def worker(self):
        worker = Worker()
        yield worker
        worker.close()

    @pytest.fixture
    def other(self):
        worker = Worker()
        yield worker
        worker.close()

    def test_a_proposal_of_a_driver_waits_for_a_worker(self, store, worker, other):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), None)
        assert (asked.token, asked.attempts) == (None, 0)
        assert store.open_proposals(study) == [(1, False)]
        assert store.is_waiting(study)
        found = store.lease(study, worker.name)
        assert found is not None
        assert (found.id, found.attempts) == (asked.id, 1)
        assert store.open_proposals(study) == [(1, True)]
        assert store.lease(study, other.name) is None
        store.tell(found.id, TRAINED, ENVIRONMENT, worker.name, found.token)
        assert store.open_proposals(study) == []
        assert [e.kind for e in store.events(study)] == ["asked", "told"]

    def test_a_lease_whose_confirmation_was_lost_is_given_again(self, store, worker):
        study = make_study(store)
        store.ask(study, 1, ("text", "key"), None)
        lost = store.lease(study, worker.name)
        assert store.is_waiting(study, worker.name)
        assert not store.is_waiting(study)
        found = store.lease(study, worker.name)
        assert found.id == lost.id
        with pytest.raises(LeaseLostError):
            store.tell(lost.id, TRAINED, ENVIRONMENT, worker.name, lost.token)
        store.tell(found.id, TRAINED, ENVIRONMENT, worker.name, found.token)

    def test_the_same_answer_again_changes_nothing(self, store, worker):
        study = make_study(store)
        store.ask(study, 1, ("text", "key"), None)
        found = store.lease(study, worker.name)
        for _ in range(3):  # as after a confirmation that was lost
            store.tell(found.id, TRAINED, ENVIRONMENT, worker.name, found.token)
        assert len(store.evaluations(study)) == 1
        assert [e.kind for e in store.events(study)] == ["asked", "told"]

    def test_an_answer_has_a_limit(self, store, worker):
        study = make_study(store)
        store.ask(study, 1, ("text", "key"), None)
        found = store.lease(study, worker.name)
        large = dataclasses.replace(TRAINED, details={"output": "x" * (1 << 20)})
        with pytest.raises(UserError, match="bytes is not stored"):
            store.tell(found.id, large, ENVIRONMENT, worker.name, found.token)
        store.tell(found.id, TRAINED, ENVIRONMENT, worker.name, found.token)

    def test_an_answer_at_a_lower_rung_is_none_at_the_next(self, store, worker, other):
        study = make_study(store)
        store.ask(study, 1, ("text", "key"), None)
        first = store.lease(study, worker.name)
        store.tell(first.id, TRAINED, ENVIRONMENT, worker.name, first.token)
        assert store.promote(first.id, 1, None) is None
        store.tell(first.id, TRAINED, ENVIRONMENT, worker.name, first.token)  # again
        assert store.open_proposals(study) == [(1, False)]
        second = store.lease(study, other.name)
        assert second.token > first.token
        higher = dataclasses.replace(TRAINED, rung="32px")
        store.tell(second.id, higher, ENVIRONMENT, other.name, second.token)
        assert [e.rung_index for e in store.evaluations(study)] == [0, 1]

    def test_a_late_answer_does_not_count(self, store, worker, other, monkeypatch):
        study = make_study(store)
        store.ask(study, 1, ("text", "key"), None)
        late = store.lease(study, ELSEWHERE)
        assert store.lease(study, worker.name) is None
        monkeypatch.setattr(lease, "EXPIRES_S", 0.0)  # it was not heard of for long
        found = store.lease(study, worker.name)
        assert found.token > late.token
        assert store.losses(found.id) == 1
        with pytest.raises(LeaseLostError, match="taken over by another process"):
            store.tell(late.id, TRAINED, ENVIRONMENT, ELSEWHERE, late.token)
        store.tell(found.id, TRAINED, ENVIRONMENT, worker.name, found.token)
        with pytest.raises(AlreadyCompletedError, match="has a result already"):
            store.tell(late.id, TRAINED, ENVIRONMENT, ELSEWHERE, late.token)
        assert len(store.evaluations(study)) == 1
        assert store.losses(found.id) == 0  # counted since the last answer

    def test_what_was_preempted_is_no_loss(self, store, worker, other):
        study = make_study(store)
        store.ask(study, 1, ("text", "key"), None)
        for _ in range(3):
            found = store.lease(study, worker.name)
            store.release(found.id, worker.name, ending="preempted")
        found = store.lease(study, other.name)
        assert (store.losses(found.id), found.attempts) == (0, 1)

    def test_many_workers_share_the_proposals(self, store, url):
        study = make_study(store)
        for number in range(1, 13):
            store.ask(study, number, (f"text {number}", f"key {number}"), None)
        taken: list[int] = []
        workers = [Worker() for _ in range(4)]

        def take(worker: Worker) -> None:
            misses = 0
            while misses < 5:
                found = store.lease(study, worker.name)
                if found is None:
                    misses += 1
                else:
                    taken.append(found.ask)
                    store.tell(found.id, TRAINED, ENVIRONMENT, worker.name, found.token)

        threads = [threading.Thread(target=take, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for worker in workers:
            worker.close()
        assert sorted(taken) == list(range(1, 13))
        assert len(store.evaluations(study)) == 12

    def test_all_that_waits_counts_against_the_limit_of_a_driver(self, store):
        study = make_study(store)
        for number in (1, 2):
            store.ask(study, number, (f"text {number}", f"{number}"), None, limit=2)
        with pytest.raises(LimitReachedError):
            store.ask(study, 3, ("text 3", "3"), None, limit=2)

    def test_workers_announce_what_they_are(self, store, worker, other):
        store.presence.announce(worker.name, ENVIRONMENT, ("jetson", "arm"))
        store.presence.announce(other.name, ENVIRONMENT, ())
        store.presence.announce(other.name, ENVIRONMENT, ())  # as after a lost confirmation
        study = make_study(store, "busy")
        store.ask(study, 4 - 3, ("text", "key"), None)
        store.lease(study, worker.name)
        first, second = store.workers()
        assert (first.name, first.tags, first.environment) == (
            worker.name,
            ("arm", "jetson"),
            ENVIRONMENT,
        )
        assert (first.study, first.ask, first.is_alive) == ("busy", 1, True)
        assert (second.study, second.ask, second.is_alive) == (None, None, True)
        before = second.heartbeat
        store.presence.beat(other.name)
        assert store.workers()[1].heartbeat > before
        store.presence.leave(other.name)
        assert [w.is_alive for w in store.workers()] == [True, False]

    def test_many_workers_on_equal_machines_come_at_once(self, store, url):
        together = threading.Barrier(4)
        failures: list[BaseException] = []

        def come() -> None:
            try:
                with Store.open(url) as own:
                    for number in range(8):
                        environment = dataclasses.replace(ENVIRONMENT, commit=str(number))
                        worker = Worker()
                        together.wait(60)
                        own.presence.announce(worker.name, environment, ())
                        worker.close()
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=come) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(store.workers()) == 32

    def test_one_process_drives_a_study_and_another_takes_over(self, store, worker, other):
        study = make_study(store)
        assert store.driven() == []
        first = store.presence.drive(study, worker.name)
        assert store.presence.drive(study, other.name) is None
        assert store.driven() == [study]
        assert store.presence.renew_driver(study, first)
        worker.close()  # as when its process ends
        second = store.presence.drive(study, other.name)
        assert second > first
        assert not store.presence.renew_driver(study, first)
        with pytest.raises(DriverLostError, match="another process has taken over"):
            store.ask(study, 1, ("text", "key"), None, driver=first)
        asked = store.ask(study, 1, ("text", "key"), None, driver=second)
        store.presence.leave_driver(study, first)  # that of another process is left alone
        assert store.driven() == [study]
        with pytest.raises(DriverLostError):
            store.promote(asked.id, 1, None, driver=first)
        store.presence.leave_driver(study, second)
        assert store.driven() == []
        assert store.presence.drive(study, other.name) > second
