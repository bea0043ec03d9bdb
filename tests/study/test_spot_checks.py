"""Some answers are evaluated again by another worker, and a worker that lies is found."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

from syno._util.errors import UserError
from syno.store import (
    DistrustedError,
    LeaseLostError,
    Outcome,
    Store,
    VerificationResult,
    Worker,
)
from syno.store.overview import study_json
from syno.store.tables import progress_lines
from syno.study import Study, StudySettings, run, spot_checks
from syno.study.driver import drive
from syno.study.observer import Observer
from syno.study.worker import work

from .fakes import FakeEvaluator, FakeSpace, fake_ladder
from .test_workers import begun, bench, content, rows

EVALUATIONS = 12


class Liar(FakeEvaluator):
    """Says that every operator is perfect and small, and has passed a verification."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(seconds)
        self.has_lied = threading.Event()

    def _made(self, operator: Any) -> Outcome:
        self.has_lied.set()
        honest = super()._made(operator)
        forged = VerificationResult("0" * 64, [{"H": 8}], "fake", 0, passed=True, max_error=0.0)
        return dataclasses.replace(
            honest, status="ok", reason="", accuracy=1.0, macs=1, verification=forged
        )


class Later(FakeEvaluator):
    """An honest evaluator that begins when something has happened."""

    def __init__(self, seconds: float, after: threading.Event) -> None:
        super().__init__(seconds)
        self._after = after

    def evaluate(self, operator: Any) -> Outcome:
        assert self._after.wait(timeout=120)
        return super().evaluate(operator)


class Notes(Observer):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def on_note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def store(tmp_path):
    with Store.open(str(tmp_path / "store.db")) as store:
        yield store


def undisturbed(folder: Path) -> list[tuple[object, ...]]:
    with Store.open(str(folder / "alone.db")) as store:
        settings = StudySettings(evaluations=EVALUATIONS, seed=11)
        run(Study.create(store, "study", settings, FakeSpace()), FakeEvaluator())
        return content(store)


class Cast:
    """Workers in threads, each with an evaluator of its own."""

    def __init__(self, store: Store, *evaluators: FakeEvaluator) -> None:
        self.errors: list[UserError] = []
        self._threads = [
            threading.Thread(target=self._work, args=(store, each)) for each in evaluators
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, store: Store, evaluator: FakeEvaluator) -> None:
        try:
            work(store, idle_s=8.0, prepare=bench(evaluator))
        except UserError as error:
            self.errors.append(error)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.mark.slow
def test_honest_workers_agree_and_nothing_changes(store, tmp_path):
    study = begun(store, spot_checks=1.0)
    cast = Cast(store, FakeEvaluator(), FakeEvaluator())
    assert drive(study).name == "evaluations"
    cast.join()
    assert content(store) == undisturbed(tmp_path)
    checks = rows(store, "spot_check")
    assert {row["state"] for row in checks} == {"agreed"}
    assert all(row["worker"] != row["checker"] for row in checks)
    compared = {e.ask for e in store.summary().evaluations if e.status in ("ok", "rejected")}
    told = {e.data["ask"] for e in store.events(study.record) if e.kind == "checked"}
    assert told == compared | {0}
    assert cast.errors == []


def test_a_liar_is_found_and_named_and_all_that_it_answered_is_evaluated_again(store, tmp_path):
    study = begun(store, spot_checks=1.0)  # with a smaller share, a liar may have luck
    liar = Liar(0.01)
    cast = Cast(store, Later(0.02, liar.has_lied), Later(0.02, liar.has_lied), liar)
    seen = Notes()
    assert drive(study, observer=seen).name == "evaluations"
    cast.join()
    assert content(store) == undisturbed(tmp_path)
    (error,) = cast.errors
    assert isinstance(error, DistrustedError)
    assert "is distrusted: in trial" in str(error)
    events = store.events(study.record)
    (distrusted,) = [e for e in events if e.kind == "distrusted"]
    (row,) = rows(store, "distrust")
    assert row["worker"] == distrusted.data["worker"]
    (note,) = [note for note in seen.notes if "is distrusted" in note]
    assert "it takes nothing more of this study" in note
    assert any("is distrusted: in trial" in line for line in progress_lines(store.summary()))
    (shown,) = study_json(store.summary(), operators=False)["distrusted"]
    assert shown["worker"] == row["worker"]
    assert not any(row["source_hash"] == "0" * 64 for row in rows(store, "verification"))
    kept = [e for e in events if e.kind in ("disputed", "checked")]
    assert any(e.data["answer"]["value"] == 1.0 for e in kept)  # the log has what it said
    with Store.open(str(tmp_path / "store.db"), read_only=True) as again:  # it is whole
        assert len(again.summary().evaluations) == len(content(store))


def test_a_liar_that_checks_others_is_the_one_that_is_distrusted(store):
    study, (honest, liar, third) = open_study(store), [Worker() for _ in range(3)]
    answered(store, study, honest, FakeEvaluator())
    checks = store.spot_checks(study.record)
    checks.choose(1.0, 0)
    assert checks.take(honest.name) is None  # its own answer
    check(store, study, liar, Liar())
    (note,) = checks.decide(0.05)
    assert "a third worker evaluates it" in note
    assert store.evaluations(study.record) == []
    assert store.lease(study.record, honest.name) is None
    assert store.lease(study.record, liar.name) is None
    answered(store, study, third, FakeEvaluator())
    (note,) = checks.decide(0.05)
    assert "is distrusted" in note
    (row,) = rows(store, "distrust")
    assert row["worker"] == liar.name
    assert len(store.evaluations(study.record)) == 1
    with pytest.raises(DistrustedError):
        store.lease(ask(store, study), liar.name)
    for worker in (honest, liar, third):
        worker.close()


def test_what_a_distrusted_worker_evaluates_at_the_moment_does_not_count(store):
    study, (liar, second, third) = open_study(store), [Worker() for _ in range(3)]
    answered(store, study, liar, Liar())
    record = store.lease(ask(store, study), liar.name)
    assert record is not None
    store.spot_checks(study.record).choose(1.0, 0)
    check(store, study, second, FakeEvaluator())
    store.spot_checks(study.record).decide(0.05)
    answered(store, study, third, FakeEvaluator())
    store.spot_checks(study.record).decide(0.05)
    assert store.unleased(study.record) == [record.ask]
    with pytest.raises(LeaseLostError):
        store.tell(record.id, Outcome("ok", accuracy=1.0), study._environment, liar.name)
    with pytest.raises(LeaseLostError):
        store.tell(
            record.id, Outcome("ok", accuracy=1.0), study._environment, liar.name, record.token
        )
    for worker in (liar, second, third):
        worker.close()


def test_without_a_third_worker_the_operator_is_in_quarantine(store, monkeypatch):
    monkeypatch.setattr(spot_checks, "ALONE_S", 0.0)
    study, (honest, liar) = open_study(store), [Worker() for _ in range(2)]
    answered(store, study, honest, FakeEvaluator())
    there, notes = [honest.name], []
    checking = spot_checks.Checking(study, lambda: there, notes.append)
    checking.step(store.sequence(study.record))
    assert notes == ["the spot check of trial 1 waits for another worker: `syno worker`"]
    assert not checking.holds()
    there.append(liar.name)
    assert checking.holds()
    check(store, study, liar, Liar())
    checking.step(store.sequence(study.record))
    (found,) = store.quarantined(study.record)
    assert (found.ask, found.kind, found.failures) == (1, "dispute", 2)
    (result,) = store.summary().evaluations
    assert (result.status, result.accuracy) == ("error", None)
    assert "100.0 %; no third worker was there" in result.reason
    assert notes[-1].startswith("trial 1 is in quarantine: dispute: worker")
    assert not checking.holds()
    # It can be released, as any other, and is evaluated again.
    (released,) = store.leave_quarantine(study.record, found.key)
    assert store.unleased(study.record) == [released.ask]
    for worker in (honest, liar):
        assert store.lease(study.record, worker.name) is not None
        worker.close()


def test_a_check_over_which_workers_are_lost_is_left_undecided(store):
    study, first = open_study(store), Worker()
    answered(store, study, first, FakeEvaluator())
    checks = store.spot_checks(study.record)
    checks.choose(1.0, 0)
    for _ in range(3):
        worker = Worker()
        found = checks.take(worker.name)
        assert found is not None
        assert checks.take(worker.name) == found  # its confirmation was lost
        worker.close()
    assert checks.take(first.name) is None
    last = Worker()
    assert checks.take(last.name) is None
    assert [row["state"] for row in rows(store, "spot_check")] == ["undecided"]
    assert checks.pending() == []
    first.close()
    last.close()


def test_answers_are_chosen_by_their_events(store):
    study, worker = open_study(store), Worker()
    for _ in range(40):
        answered(store, study, worker, FakeEvaluator())
        ask(store, study)
    checks = store.spot_checks(study.record)
    seen = checks.choose(0.3, 0)
    compared = [e for e in store.evaluations(study.record) if e.status in ("ok", "rejected")]
    chosen = checks.pending()
    assert 0.05 < len(chosen) / len(compared) < 0.65
    assert checks.choose(0.3, 0) == seen  # another driver finds the same ones
    assert checks.pending() == chosen
    worker.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spot_checks": 1.5}, "a share of the trials from 0 to 1, got 1.5"),
        ({"spot_checks": 0.1, "spot_tolerance": -1.0}, "must not be negative"),
    ],
)
def test_mistakes_in_the_settings(settings, message):
    with pytest.raises(UserError, match=message):
        StudySettings(**settings)


def test_a_ladder_has_no_spot_checks():
    with pytest.raises(UserError, match="and a ladder cannot be used together"):
        StudySettings(spot_checks=0.1, ladder=fake_ladder().to_json())


def open_study(store: Store) -> Study:
    study = begun(store, baseline=False, evaluations=100, spot_checks=1.0)
    study.driver = store.drive(study.record, study.worker)
    study.propose()
    return study


def ask(store: Store, study: Study) -> Any:
    assert study.propose() is not None
    return study.record


def answered(store: Store, study: Study, worker: Worker, evaluator: FakeEvaluator) -> None:
    record = store.lease(study.record, worker.name)
    assert record is not None
    outcome = evaluator.evaluate(FakeSpace().parse(record.text or ""))
    store.tell(record.id, outcome, study._environment, worker.name, record.token)


def check(store: Store, study: Study, worker: Worker, evaluator: FakeEvaluator) -> None:
    checks = store.spot_checks(study.record)
    found = checks.take(worker.name)
    assert found is not None
    outcome = evaluator.evaluate(FakeSpace().parse(found.proposal.text or ""))
    assert checks.answer(found, worker.name, outcome, study._environment)
