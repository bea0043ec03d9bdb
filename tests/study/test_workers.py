"""A driver proposes, and workers evaluate: the fakes in threads of one process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from syno._util.errors import UserError
from syno.store import Store
from syno.study import Study, StudySettings
from syno.study.answers import Answers
from syno.study.driver import drive
from syno.study.observer import Observer
from syno.study.worker import Bench, work

from .fakes import FakeEvaluator, FakeRungs, FakeSpace, fake_ladder

EVALUATIONS = 12


def bench(evaluator: Any) -> Any:
    @contextlib.contextmanager
    def prepare(answers: Answers, observer: Observer) -> Iterator[Bench]:
        yield Bench(FakeSpace(1).parse, evaluator)

    return prepare


@pytest.fixture
def store(tmp_path):
    with Store.open(str(tmp_path / "store.db")) as store:
        yield store


def begun(store: Store, **settings: Any) -> Study:
    settings = {"evaluations": EVALUATIONS, "seed": 11, **settings}
    return Study.create(store, "study", StudySettings(**settings), FakeSpace())


def in_threads(store: Store, count: int, evaluator: Any, **options: Any) -> list[threading.Thread]:
    def one() -> None:
        work(store, idle_s=1.0, prepare=bench(evaluator), **options)

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
    study.driver = store.drive(study.record, study.worker)
    study.propose()
    with pytest.raises(
        UserError, match="needs workers with the tags jetson, and this one has none"
    ):
        work(store, study="study", idle_s=0.0, prepare=bench(FakeEvaluator()))


def rows(store: Store, table: str) -> list[dict[str, Any]]:
    from syno.store import schema
    from syno.store.raw import raw_rows

    with store._reading() as connection:
        return raw_rows(connection, schema.metadata.tables[table])
