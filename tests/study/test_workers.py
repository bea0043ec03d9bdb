"""A driver proposes, and workers evaluate: the fakes in threads of one process."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from syno._util.errors import UserError
from syno.store import Outcome, Store, UnavailableError, Worker
from syno.study import Study, StudySettings
from syno.study.answers import Answers
from syno.study.driver import drive
from syno.study.evaluate.failures import check_disk
from syno.study.observer import StudyObserver
from syno.study.worker import MOST_LOSSES, MOST_TEXT, Bench, work

from .fakes import FakeEvaluator, FakeRungs, FakeSpace, RealSpace, fake_ladder
from .read_again import Whole, history_of, read_again

EVALUATIONS = 12


def bench(evaluator: Any, space: Any = None) -> Any:
    @contextlib.contextmanager
    def prepare(answers: Answers, observer: StudyObserver) -> Iterator[Bench]:
        yield Bench((space or FakeSpace(1)).parse, evaluator)

    return prepare


@pytest.fixture
def store(tmp_path):
    with Store.open(str(tmp_path / "store.db")) as store:
        yield store


def begun(store: Store, **settings: Any) -> Study:
    settings = {"evaluations": EVALUATIONS, "seed": 11, **settings}
    return Study.create(store, "study", StudySettings(**settings), FakeSpace())


def in_threads(
    store: Store, count: int, evaluator: Any, space: Any = None, **options: Any
) -> list[threading.Thread]:
    def one() -> None:
        work(store, idle_s=3.0, prepare=bench(evaluator, space), **options)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    return threads


def content(store: Store) -> list[tuple[object, ...]]:
    summary = store.summary("study")
    return [(e.ask, e.key, e.status, e.reason, e.accuracy) for e in summary.evaluations]


def undisturbed(folder: Any, **settings: Any) -> list[tuple[object, ...]]:
    from syno.study import run

    with Store.open(str(folder / "alone.db")) as store:
        made = {"evaluations": EVALUATIONS, "seed": 11, **settings}
        study = Study.create(store, "study", StudySettings(**made), FakeSpace())
        run(study, FakeEvaluator())
        return content(store)


def test_workers_find_what_one_process_finds(store, tmp_path):
    study = begun(store)
    threads = in_threads(store, 2, FakeEvaluator(0.02))
    reason = drive(study)
    for thread in threads:
        thread.join()
    assert reason.name == "evaluations"
    assert content(store) == undisturbed(tmp_path)
    summary = store.summary("study")
    assert summary.open_asks == ()
    told = [e.data["ask"] for e in summary.events if e.kind == "told"]
    assert sorted(told) == list(range(len(content(store)) + 1))
    assert told[0] == 0  # operators wait for the baseline
    assert not any(worker.is_alive for worker in store.workers())


@pytest.mark.slow
@pytest.mark.parametrize("method", ["tree", "local"])
def test_proposals_follow_from_the_log_up_to_what_they_have_seen(store, method):
    space = RealSpace()
    settings = StudySettings(evaluations=10, seed=11, method=method)
    study = Study.create(store, "study", settings, space)
    threads = in_threads(store, 3, FakeEvaluator(0.01), space=space)
    drive(study)
    for thread in threads:
        thread.join()
    progress = read_again(store, study.record)
    told = {e.data["ask"]: e.sequence for e in progress.events if e.kind == "told"}
    asked = {e.data["ask"]: e for e in progress.events if e.kind == "asked"}
    again = Study.load(store, "study", space)
    for proposal in progress.proposals[1:]:
        seen = asked[proposal.ask].data["seen"]
        assert asked[proposal.ask].sequence > seen
        before = Whole(
            progress.events[:seen],
            tuple(
                p if told[p.ask] <= seen else dataclasses.replace(p, status=None, state="asked")
                for p in progress.proposals
                if p.ask < proposal.ask
            ),
            tuple(r for r in progress.results if told[r.ask] <= seen),
            tuple(e for e in progress.evaluations if told[e.ask] <= seen),
        )
        found = again._method.propose(history_of(again, proposal.ask, before))
        assert (found.text, found.key) == (proposal.text, proposal.key)


def test_an_operator_over_which_many_workers_were_lost_is_given_up(store, monkeypatch):
    study = begun(store, baseline=False, evaluations=2)
    study.driver = store.presence.drive(study.record, study.worker)
    study.propose()
    for _ in range(MOST_LOSSES):
        worker = Worker()
        assert store.lease(study.record, worker.name, counted=False) is not None
        worker.close()  # as when its process is killed
    evaluator = FakeEvaluator()
    evaluator.is_isolated = True  # type: ignore[attr-defined]
    work(store, idle_s=0.0, prepare=bench(evaluator))
    assert evaluator.evaluated == []
    (found,) = store.summary("study").evaluations
    assert (found.status, found.reason) == ("error", "the process ended in each of 10 attempts")
    assert [q.ask for q in store.quarantine.of(study.record)] == [1]


def test_an_operator_with_another_key_is_refused_and_given_back(store):
    study = begun(store, baseline=False)
    study.driver = store.presence.drive(study.record, study.worker)
    store.ask(study.record, 1, ("operator 5", "0" * 32), None)
    with pytest.raises(UserError, match="and this worker computes"):
        work(store, study="study", idle_s=0.0, prepare=bench(FakeEvaluator()))
    assert store.open_proposals(study.record) == [(1, False)]


def test_what_arrives_at_a_worker_has_limits(store):
    study = begun(store, baseline=False)
    study.driver = store.presence.drive(study.record, study.worker)
    store.ask(study.record, 1, ("x" * (MOST_TEXT + 1), "0" * 32), None)
    with pytest.raises(UserError, match="a text of 65,537 characters"):
        work(store, study="study", idle_s=0.0, prepare=bench(FakeEvaluator()))
    assert store.open_proposals(study.record) == [(1, False)]
    for tags in (["x" * 101], [""], ["tag"] * 65):
        with pytest.raises(UserError, match="at most 64 texts of 1 to 100 characters"):
            work(store, tags=tags)


def test_a_study_that_a_worker_cannot_evaluate_is_left_to_others(store):
    study = begun(store)
    study.driver = store.presence.drive(study.record, study.worker)
    study.propose()
    notes: list[str] = []

    class Watch(StudyObserver):
        def on_note(self, text: str) -> None:
            notes.append(text)

    assert work(store, idle_s=0.0, observer=Watch()) == 0  # a module of a program
    assert "study 'study' is left to others" in notes[0]
    with pytest.raises(UserError, match="which a store cannot hold"):
        work(store, study="study", idle_s=0.0)
    assert store.open_proposals(study.record) == [(0, False)]


def test_a_late_answer_is_kept_in_the_log_and_does_not_count(store):
    study = begun(store, baseline=False, evaluations=1)
    study.driver = store.presence.drive(study.record, study.worker)
    study.propose()

    class Slow(FakeEvaluator):
        """While it evaluates, its lease goes to another worker, which answers."""

        def evaluate(self, operator: Any) -> Any:
            (name,) = {row["lease"] for row in rows(store, "proposal")}
            Worker._open.discard(name)
            work(store, idle_s=0.0, prepare=bench(FakeEvaluator()))
            Worker._open.add(name)
            return Outcome("ok", accuracy=0.123)

    work(store, idle_s=0.0, prepare=bench(Slow()))
    assert len(store.evaluations(study.record)) == 1
    (dropped,) = [e for e in store.events(study.record) if e.kind == "dropped"]
    assert dropped.data["outcome"]["accuracy"] == 0.123
    assert dropped.data["token"] == 1


def test_a_store_in_memory_has_no_workers():
    with (
        Store.open("sqlite://") as store,
        pytest.raises(UserError, match="other processes cannot reach it"),
    ):
        work(store)


def test_a_worker_that_starts_while_the_database_restarts_waits(store, monkeypatch):
    begun(store)
    failures = dict.fromkeys(("study", "announce"), 1)

    def failing_first(of: object, name: str) -> Callable[..., Any]:
        call = getattr(of, name)

        def made(*given: Any) -> Any:
            failures[name] -= 1
            if failures[name] >= 0:
                raise UnavailableError("the server restarts")
            return call(*given)

        return made

    for of, name in ((store, "study"), (store.presence, "announce")):
        monkeypatch.setattr(of, name, failing_first(of, name))
    assert work(store, study="study", idle_s=0.0) == 0
    assert max(failures.values()) < 0
    assert len(store.workers()) == 1


@pytest.mark.slow
def test_a_ladder_is_climbed_by_workers(store):
    study = begun(store, ladder=fake_ladder().to_json())
    threads = in_threads(store, 2, FakeRungs(0.01))
    assert drive(study).name == "evaluations"
    for thread in threads:
        thread.join()
    rungs = {e.rung_index for e in store.summary("study").evaluations}
    assert rungs == {0, 1, 2}
    assert store.summary("study").open_asks == ()


def test_a_study_is_evaluated_by_workers_with_its_tags(store):
    study = begun(store, needs=["jetson"], evaluations=3)
    other = in_threads(store, 1, FakeEvaluator(), tags=["server"])
    own = in_threads(store, 1, FakeEvaluator(), tags=["jetson", "arm"])
    drive(study)
    for thread in other + own:
        thread.join()
    leases = {row["worker"] for row in rows(store, "lease")}
    (name,) = [w.name for w in store.workers() if "jetson" in w.tags]
    assert leases == {name}


def test_a_worker_without_the_tags_says_what_it_lacks(store):
    study = begun(store, needs=["jetson"])
    study.driver = store.presence.drive(study.record, study.worker)
    study.propose()
    with pytest.raises(
        UserError, match="needs workers with the tags jetson, and this one has none"
    ):
        work(store, study="study", idle_s=0.0, prepare=bench(FakeEvaluator()))


def rows(store: Store, table: str) -> list[dict[str, Any]]:
    from syno.store import schema
    from syno.store.raw import raw_rows

    with store.database.reading() as connection:
        return raw_rows(connection, schema.metadata.tables[table])


@pytest.mark.slow
def test_a_worker_with_a_full_disk_leaves_its_trials_to_others(store, tmp_path):
    study = begun(store)

    class Full(FakeEvaluator):
        def evaluate(self, operator: Any) -> Any:
            check_disk(OSError(errno.ENOSPC, "No space left on device"))

    notes: list[str] = []

    class Watch(StudyObserver):
        def on_note(self, text: str) -> None:
            notes.append(text)

    threads = in_threads(store, 1, FakeEvaluator(0.02))
    threads += in_threads(store, 1, Full(), observer=Watch())
    drive(study)
    for thread in threads:
        thread.join()
    assert content(store) == undisturbed(tmp_path)
    assert notes == [] or "is left to others: the disk is full" in notes[0]
