"""What every backend of the store does: subclass and give the fixture `url`."""

from __future__ import annotations

import dataclasses
import json
import threading

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from syno._util.errors import InternalError, UserError
from syno.store import (
    AlreadyCompletedError,
    AskTakenError,
    LeaseLostError,
    LimitReachedError,
    Outcome,
    Store,
    Worker,
)
from syno.store.records import GIVEN_UP
from syno.store.schema import VERSION

from .sample import BASELINE, ENVIRONMENT, TRAINED, VERIFICATION, make_study


class StoreContract:
    @pytest.fixture
    def store(self, url):
        with Store.open(url) as store:
            yield store

    @pytest.fixture
    def worker(self):
        worker = Worker()
        yield worker
        worker.close()

    def test_a_new_store_has_the_present_version(self, store):
        assert store.version() == VERSION

    def test_a_study_comes_back_as_it_was_written(self, store):
        made = make_study(store, "first", model="m", depth=3, names=["a", "b"])
        assert store.study("first") == made == store.study(made.id) == store.study()
        assert made.settings == {"model": "m", "depth": 3, "names": ["a", "b"]}
        assert made.specification == {"input": "[H]"}
        assert made.seed == 3

    def test_what_stands_beside_an_answer_is_an_evaluation_of_the_same_proposal(
        self, store, worker
    ):
        study = make_study(store, "first")
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        beside = dataclasses.replace(
            TRAINED, recipe=TRAINED.recipe | {"precision": "int8"}, accuracy=0.5
        )
        store.tell(asked.id, dataclasses.replace(TRAINED, beside=(beside,)), ENVIRONMENT)
        summary = store.summary(study)
        (plain,), (quantised,) = summary.evaluations, summary.quantized
        assert (plain.precision, quantised.precision) == ("float32", "int8")
        assert (plain.accuracy, quantised.accuracy) == (TRAINED.accuracy, 0.5)
        assert plain.latency_ratio == quantised.latency_ratio is not None
        assert quantised.source_hash == plain.source_hash
        seed = dataclasses.replace(TRAINED, seed=9)
        more = dataclasses.replace(seed, beside=(dataclasses.replace(beside, seed=9),))
        store.add_evaluation(study, 1, more, ENVIRONMENT)
        assert [e.seed for e in store.summary(study).quantized] == [TRAINED.seed, 9]
        assert store.summary(study).evaluations[1].latency_ratio == plain.latency_ratio
        with pytest.raises(UserError, match="has been evaluated on the holdout split"):
            store.add_evaluation(study, 1, more, ENVIRONMENT)

    def test_the_latency_of_the_original_in_int8_has_its_ratio(self, store, worker):
        study = make_study(store, "first")
        asked = store.ask(study, 0, None, worker.name)
        recipe = BASELINE.recipe | {"precision": "int8"}
        beside = dataclasses.replace(BASELINE, recipe=recipe, details={"latency_ratio": 0.5})
        store.tell(asked.id, dataclasses.replace(BASELINE, beside=(beside,)), ENVIRONMENT)
        summary = store.summary(study)
        assert summary.baseline is not None
        assert summary.baseline.latency_ratio == 1.0
        assert [e.latency_ratio for e in summary.quantized] == [0.5]
        assert summary.baselines == (summary.baseline,)

    def test_a_name_with_a_dash_at_its_end_gets_the_first_free_number(self, store):
        assert [make_study(store, "digits-").name for _ in range(3)] == [
            "digits-1",
            "digits-2",
            "digits-3",
        ]

    def test_a_name_is_given_once(self, store):
        make_study(store, "twice")
        with pytest.raises(UserError, match="has a study 'twice' already"):
            make_study(store, "twice")

    def test_an_unknown_study_is_refused_and_the_known_ones_are_named(self, store):
        with pytest.raises(UserError, match="holds no study"):
            store.study()
        make_study(store, "one")
        make_study(store, "two")
        with pytest.raises(UserError, match=r"no study 'three'.*\n.*one, two"):
            store.study("three")
        assert store.study().name == "two"  # the latest

    def test_events_are_numbered_within_their_study(self, store):
        first, second = make_study(store, "a"), make_study(store, "b")
        assert store.append_event(first, "note", {"n": 1}) == 1
        assert store.append_event(second, "note", {}) == 1
        assert store.append_event(first, "note", {"n": 2}) == 2
        assert [(e.sequence, e.data) for e in store.events(first)] == [(1, {"n": 1}), (2, {"n": 2})]
        assert [(e.sequence, e.data) for e in store.events(first, after=1)] == [(2, {"n": 2})]
        assert store.events(first, after=2) == []

    def test_a_proposal_is_stored_when_asked_and_its_answer_when_told(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        assert store.proposals(study) == [asked]
        assert (asked.kind, asked.status) == ("operator", None)
        assert (asked.text, asked.key) == ("text", "key")
        store.tell(asked.id, TRAINED, ENVIRONMENT)
        assert store.proposals(study) == [
            dataclasses.replace(asked, state="told", status="ok", rung="16px")
        ]
        assert [e.kind for e in store.events(study)] == ["asked", "told"]

    def test_ask_numbers_rise_by_one(self, store, worker):
        study = make_study(store)
        store.ask(study, 0, None, worker.name)
        store.ask(study, 1, ("text", "key"), worker.name)
        for number in (0, 1, 3):
            with pytest.raises(AskTakenError, match="2 is the next"):
                store.ask(study, number, ("other", "key"), worker.name)
        assert [p.ask for p in store.proposals(study)] == [0, 1]

    def test_one_operator_in_two_studies_is_one_row(self, store, worker):
        for name in ("a", "b"):
            store.ask(make_study(store, name), 1, ("text", "key"), worker.name)
        assert count(store, "operator") == 1
        assert count(store, "proposal") == 2

    def test_a_second_answer_is_refused_and_changes_nothing(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        store.tell(asked.id, TRAINED, ENVIRONMENT)
        before = store.summary(study)
        with pytest.raises(AlreadyCompletedError, match="has a result already"):
            store.tell(asked.id, Outcome("error", reason="late"), ENVIRONMENT)
        assert store.summary(study) == before

    def test_an_answer_to_nothing_is_refused(self, store):
        with pytest.raises(UserError, match="no proposal has the id 99"):
            store.tell(99, TRAINED, ENVIRONMENT)

    def test_a_proposal_of_a_live_worker_is_not_handed_out_again(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        other = Worker()
        assert store.lease_open(study, other.name) is None
        worker.close()
        again = store.lease_open(study, other.name)
        assert again == dataclasses.replace(asked, attempts=2)
        assert store.lease_open(study, other.name) is None
        other.close()

    def test_interrupted_proposals_come_back_in_the_order_of_asking(self, store, worker):
        study = make_study(store)
        for number in (1, 2, 3):
            store.ask(study, number, (f"text {number}", f"key {number}"), worker.name)
        worker.close()
        with_lease = Worker()
        found = [store.lease_open(study, with_lease.name) for _ in range(4)]
        assert [p.ask if p else None for p in found] == [1, 2, 3, None]
        with_lease.close()

    def test_a_released_proposal_is_free_and_its_attempt_does_not_count(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        store.release(asked.id, worker.name)
        again = store.lease_open(study, worker.name)
        assert again is not None
        assert (again.id, again.attempts) == (asked.id, 1)

    def test_an_operator_that_fails_twice_is_in_quarantine_until_it_is_let_out(self, store, worker):
        study, other = make_study(store), make_study(store, "other")
        asked = [
            store.ask(study, number, (f"text {number}", f"{number}bad"), worker.name)
            for number in (1, 2, 3)
        ]
        apart = store.ask(other, 1, ("text 2", "2bad"), worker.name)
        assert store.quarantine.add(asked[1].id, "crash", "SIGSEGV") == 1
        assert store.quarantine.add(apart.id, "crash", "SIGSEGV") == 1
        assert store.quarantine.add(asked[2].id, "crash", "SIGBUS") == 1
        assert store.quarantine.of(study) == []
        assert store.quarantine.add(asked[1].id, "hang", "no answer") == 2
        (record,) = store.quarantine.of(study)
        assert (record.key, record.text, record.ask) == ("2bad", "text 2", 2)
        assert (record.failures, record.kind, record.reason) == (2, "hang", "no answer")
        assert store.quarantine.of(other) == []
        assert store.summary(study).quarantined == (record,)
        for each in asked:
            failed = Outcome("timeout", reason="no answer")
            store.tell(each.id, failed if each is asked[1] else TRAINED, ENVIRONMENT)

        with pytest.raises(UserError, match=r"key begins with '3'.*\n  in quarantine: 2bad"):
            store.quarantine.leave(study, "3")
        assert store.quarantine.leave(study, "2b") == [record]
        assert store.quarantine.of(study) == []
        summary = store.summary(study)
        assert summary.open_asks == (2,)  # to be evaluated again, under its number
        assert [e.ask for e in summary.evaluations] == [1, 3]  # the others keep their answers
        kinds = [(e.kind, e.data.get("reason")) for e in store.events(study)]
        assert ("failed", "no answer") in kinds  # the log keeps what happened
        assert ("released", "no answer") in kinds
        again = store.lease_open(study, worker.name)
        assert (again.id, again.attempts) == (asked[1].id, 1)
        store.tell(again.id, TRAINED, ENVIRONMENT)
        assert store.quarantine.add(asked[1].id, "crash", "SIGSEGV") == 1
        with pytest.raises(UserError, match="no operator is in quarantine"):
            store.quarantine.leave(study, None)

    def test_a_baseline_has_no_operator_that_could_fail(self, store, worker):
        asked = store.ask(make_study(store), 0, None, worker.name)
        with pytest.raises(InternalError, match="has no operator"):
            store.quarantine.add(asked.id, "crash", "SIGSEGV")

    def test_a_lease_is_renewed_by_its_holder_only(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        assert store.renew(asked.id, worker.name)
        assert not store.renew(asked.id, "somebody:1:1:1")

    def test_what_others_evaluate_counts_against_the_limit(self, store, worker):
        study, other = make_study(store), Worker()
        store.ask(study, 0, None, worker.name, limit=2)
        first = store.ask(study, 1, ("text 1", "1"), worker.name, limit=2)
        store.tell(first.id, TRAINED, ENVIRONMENT)
        second = store.ask(study, 2, ("text 2", "2"), worker.name, limit=2)
        for check in (
            lambda: store.ask(study, 3, ("text 3", "3"), other.name, limit=2),
            lambda: store.check_limit(study, 2, other.name),
        ):
            with pytest.raises(LimitReachedError, match="2 operators of the study are evaluated"):
                check()
        assert [p.ask for p in store.proposals(study)] == [0, 1, 2]
        store.check_limit(study, 2, worker.name)  # what it has open itself is its own affair
        # Refused before training: that is no evaluation, and another may be asked for.
        store.tell(second.id, Outcome("rejected", reason="no slot"), ENVIRONMENT)
        third = store.ask(study, 3, ("text 3", "3"), other.name, limit=2)
        # A failure is one.
        store.tell(third.id, Outcome("error", reason="diverged", rung="16px"), ENVIRONMENT)
        with pytest.raises(LimitReachedError):
            store.ask(study, 4, ("text 4", "4"), worker.name, limit=2)
        assert store.ask(study, 4, ("text 4", "4"), worker.name).ask == 4  # without a limit
        other.close()

    def test_what_was_interrupted_comes_before_another_operator(self, store, worker):
        study, other = make_study(store), Worker()
        store.ask(study, 1, ("text 1", "1"), other.name, limit=5)
        other.close()
        with pytest.raises(AskTakenError, match="proposal 1 of the study was interrupted"):
            store.ask(study, 2, ("text 2", "2"), worker.name, limit=5)
        assert store.lease_open(study, worker.name).ask == 1
        assert store.ask(study, 2, ("text 2", "2"), worker.name, limit=5).ask == 2

    def test_many_that_ask_at_once_stay_within_the_limit(self, store):
        study = make_study(store)
        workers = [Worker() for _ in range(8)]
        asked, refused = [], []
        start = threading.Barrier(len(workers))

        def ask(worker):
            start.wait()
            while True:
                number = len(store.proposals(study)) + 1
                try:
                    found = store.ask(
                        study, number, (f"text {number}", f"{number}"), worker.name, limit=5
                    )
                except AskTakenError:
                    continue
                except LimitReachedError:
                    refused.append(worker)
                else:
                    asked.append(found.ask)
                return

        threads = [threading.Thread(target=ask, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(asked) == [1, 2, 3, 4, 5]
        assert len(refused) == 3
        for worker in workers:
            worker.close()

    def test_an_answer_of_who_lost_the_lease_is_refused(self, store, worker):
        study, other = make_study(store), Worker()
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        worker.close()
        store.lease_open(study, other.name)
        with pytest.raises(LeaseLostError, match=r"ask 1\) was taken over by another process"):
            store.tell(asked.id, TRAINED, ENVIRONMENT, worker.name)
        store.tell(asked.id, TRAINED, ENVIRONMENT, other.name)
        with pytest.raises(AlreadyCompletedError):
            store.tell(asked.id, TRAINED, ENVIRONMENT, worker.name)
        # It is evaluated at the next rung of a ladder now: a late answer is not about that.
        store.promote(asked.id, 1, other.name)
        with pytest.raises(LeaseLostError):
            store.tell(asked.id, TRAINED, ENVIRONMENT, worker.name)
        assert [r.rung_index for r in store.rung_results(study)] == [0]
        other.close()

    def test_a_promotion_that_was_decided_by_other_results_is_refused(self, store, worker):
        study = make_study(store)
        asked = [store.ask(study, n, (f"text {n}", f"{n}"), worker.name) for n in (1, 2)]
        store.tell(asked[0].id, TRAINED, ENVIRONMENT)
        state = store.state(study)
        store.tell(asked[1].id, TRAINED, ENVIRONMENT)
        with pytest.raises(AskTakenError, match="has new results"):
            store.promote(asked[0].id, 1, worker.name, state=state)
        store.promote(asked[0].id, 1, worker.name, state=state)  # it has read them meanwhile
        with pytest.raises(AskTakenError, match="was promoted to rung 1 already"):
            store.promote(asked[0].id, 1, worker.name, state=state)

    def test_an_attempt_counts_where_it_is_said_so(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name, counted=False)
        assert asked.attempts == 0
        store.release(asked.id, worker.name, counted=False)
        assert store.lease_open(study, worker.name, counted=False).attempts == 0
        store.release(asked.id, worker.name, counted=False)
        assert store.lease_open(study, worker.name).attempts == 1

    def test_what_was_given_up_is_let_out_of_quarantine(self, store, worker):
        study = make_study(store)
        baseline = store.ask(study, 0, None, worker.name)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        for each in (baseline, asked):
            store.tell(each.id, Outcome("error", reason=GIVEN_UP.format(7)), ENVIRONMENT)
        found = store.quarantine.of(study)
        assert [(r.key, r.ask, r.failures, r.kind) for r in found] == [
            ("baseline", 0, 7, "crash"),
            ("key", 1, 7, "crash"),
        ]
        assert store.quarantine.leave(study, None) == found
        assert store.quarantine.of(study) == []
        assert store.summary(study).open_asks == (0, 1)
        assert count(store, "evaluation") == 0

    def test_a_summary_holds_all_that_was_told(self, store, worker):
        study = make_study(store)
        baseline = store.ask(study, 0, None, worker.name)
        good = store.ask(study, 1, ("text one", "key one"), worker.name)
        bad = store.ask(study, 2, ("text two", "key two"), worker.name)
        store.ask(study, 3, ("text three", "key three"), worker.name)
        store.tell(bad.id, Outcome("rejected", reason="no slot"), ENVIRONMENT)
        store.tell(good.id, TRAINED, ENVIRONMENT)
        store.tell(baseline.id, BASELINE, ENVIRONMENT)
        store.append_event(study, "space", {"rejections": {"pooling": 4}})

        found = store.summary("study")
        assert found.baseline is not None
        assert (found.baseline.accuracy, found.baseline.latency_ms) == (0.9, 2.0)
        assert found.baseline.latency_ratio == 1.0
        assert [(e.ask, e.status) for e in found.evaluations] == [(1, "ok"), (2, "rejected")]
        first, second = found.evaluations
        assert (first.text, first.key, first.accuracy) == ("text one", "key one", 0.875)
        assert (first.latency_ms, first.latency_spread_ms, first.latency_ratio) == (1.5, 0.1, 0.75)
        assert first.baseline_latency_ms == 2.0
        assert (first.macs, first.params, first.primitives) == (12345, 678, TRAINED.primitives)
        assert (first.rung, first.recipe, first.seed) == ("16px", TRAINED.recipe, 5)
        assert first.environment == ENVIRONMENT
        assert first.details == {"losses": [2.0, 1.0]}
        assert first.source_hash == "5ec7e1"
        assert (second.reason, second.latency_ms) == ("no slot", None)
        assert found.trained == (first,)
        assert found.rejections == {"pooling": 4}
        assert found.open_asks == (3,)
        assert json.loads(json.dumps(found.to_json()))["evaluations"][0]["accuracy"] == 0.875

    def test_the_reason_for_stopping_is_that_of_the_last_run(self, store):
        study = make_study(store)
        reasons = []
        for kind, data in [
            ("started", {}),
            ("stopped", {"reason": "seconds"}),
            ("resumed", {}),
            ("stopped", {"reason": "evaluations"}),
        ]:
            store.append_event(study, kind, data)
            reasons.append(store.summary(study).stop_reason)
        assert reasons == ["", "seconds", "", "evaluations"]

    def test_numbers_without_a_value_are_kept_as_none(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        outcome = Outcome(
            "error", reason="diverged", accuracy=float("nan"), details={"losses": [float("inf")]}
        )
        store.tell(asked.id, outcome, ENVIRONMENT)
        (found,) = store.summary(study).evaluations
        assert (found.accuracy, found.details) == (None, {"losses": [None]})

    def test_a_measurement_needs_a_verification_that_passed(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        unverified = dataclasses.replace(TRAINED, verification=None)
        with pytest.raises(InternalError, match="without a verification"):
            store.tell(asked.id, unverified, ENVIRONMENT)
        failed = dataclasses.replace(VERIFICATION, passed=False)
        with pytest.raises(IntegrityError):
            store.tell(asked.id, dataclasses.replace(TRAINED, verification=failed), ENVIRONMENT)
        assert count(store, "evaluation") == 0  # all of an answer or nothing
        assert store.proposals(study)[0].state == "asked"

    def test_the_verification_of_a_measurement_cannot_be_null(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        store.tell(asked.id, TRAINED, ENVIRONMENT)
        for change in ("verification_id = NULL", "source_hash = 'other'", "passed = NOT passed"):
            with pytest.raises(IntegrityError), store.database.writing() as connection:
                connection.execute(text(f"UPDATE measurement SET {change}"))

    def test_one_evaluation_for_proposal_recipe_split_rung_and_seed(self, store, worker):
        study = make_study(store)
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        store.tell(asked.id, TRAINED, ENVIRONMENT)
        with store.database.writing() as connection:
            connection.execute(text("UPDATE proposal SET state = 'asked'"))
        with pytest.raises(IntegrityError):
            store.tell(asked.id, TRAINED, ENVIRONMENT)
        store.tell(asked.id, dataclasses.replace(TRAINED, seed=6), ENVIRONMENT)
        assert count(store, "evaluation") == 2

    def test_equal_environments_are_one_row(self, store, worker):
        study = make_study(store)
        for number in (1, 2):
            asked = store.ask(study, number, (f"text {number}", "key"), worker.name)
            store.tell(asked.id, TRAINED, ENVIRONMENT)
        assert count(store, "environment") == 1

    def test_a_long_operator_is_stored(self, store, worker):
        study = make_study(store)
        long = "step " * 5000
        asked = store.ask(study, 1, (long, "key"), worker.name)
        recipe = dataclasses.replace(TRAINED, recipe={"note": "x" * 20000})
        store.tell(asked.id, recipe, ENVIRONMENT)
        assert store.proposals(study)[0].text == long


def count(store: Store, table: str) -> int:
    with store.database.reading() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())
