"""Old stores are brought up to date, newer ones are refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from syno._util.errors import UserError
from syno.store import DamagedError, Store, StudyState, Worker, schema
from syno.store.migrations import MIGRATIONS, Migration
from syno.store.operators import KEY_VERSION
from syno.store.seals import seal_of_stored
from syno.study import StudySettings

from .sample import ENVIRONMENT, TRAINED

DATA = Path(__file__).parent / "data"


def restored(name: str, path: Path, *changes: str) -> Path:
    """A golden store, changed by some statements of SQL."""
    with sqlite3.connect(path) as connection:
        connection.executescript((DATA / name).read_text())
        connection.execute("PRAGMA foreign_keys = OFF")
        for change in changes:
            assert connection.execute(change).rowcount > 0
    connection.close()
    return path


@pytest.fixture
def old(tmp_path):
    return restored("v1.sql", tmp_path / "old.db")


def shape(path: Path) -> dict[str, object]:
    """Columns, keys and indexes of every table, whatever way they came about."""
    with Store.open(str(path)) as store, store.database.reading() as connection:
        found = inspect(connection)
        return {
            table: (
                {c["name"]: (str(c["type"]), c["nullable"]) for c in found.get_columns(table)},
                found.get_pk_constraint(table)["constrained_columns"],
                {(i["name"], tuple(i["column_names"])) for i in found.get_indexes(table)},
                {tuple(u["column_names"]) for u in found.get_unique_constraints(table)},
                {
                    (tuple(k["constrained_columns"]), k["referred_table"])
                    for k in found.get_foreign_keys(table)
                },
                len(found.get_check_constraints(table)),
            )
            for table in found.get_table_names()
        }


@pytest.mark.parametrize(
    "golden", ["v1.sql", "v4.sql", "v5.sql", "v6.sql", "v7.sql", "v8.sql", "v9.sql"]
)
def test_an_old_store_gets_the_shape_of_a_new_one(golden, tmp_path):
    old = restored(golden, tmp_path / "old.db")
    assert shape(old) == shape(tmp_path / "new.db")


@pytest.mark.parametrize("version", [2, 3])
def test_a_store_that_stopped_at_a_version_between_goes_on_from_there(version, old, tmp_path):
    """No file of these versions was kept: the steps of the first file to there make one."""
    with sqlite3.connect(old) as connection:
        for step in MIGRATIONS:
            if step.version <= version:
                for statement in step.statements:
                    connection.execute(statement)
                connection.execute(
                    "INSERT INTO syno_schema (version, written_by, applied) VALUES (?, '', '')",
                    (step.version,),
                )
    connection.close()
    assert shape(old) == shape(tmp_path / "new.db")
    with Store.open(str(old)) as store:
        assert store.version() == schema.VERSION
        assert store.summary("old").open_asks == (2,)


def test_a_store_of_version_1_keeps_its_content_and_goes_on(old):
    with Store.open(str(old)) as store:
        assert store.version() == schema.VERSION
        summary = store.summary("old")
        assert summary.baseline is not None
        assert summary.baseline.latency_ms == 2.0
        (evaluation,) = summary.evaluations
        assert (evaluation.text, evaluation.accuracy) == ("operator one", 0.8)
        assert (evaluation.latency_ms, evaluation.latency_ratio) == (1.1, 0.5)
        assert summary.open_asks == (2,)

        worker = Worker()
        open_one = store.lease_open(summary.study, worker.name)
        assert open_one is not None
        assert (open_one.text, open_one.attempts) == ("operator two", 1)
        store.tell(open_one.id, TRAINED, ENVIRONMENT)
        assert [e.status for e in store.summary("old").evaluations] == ["ok", "ok"]
        worker.close()


def test_a_store_of_version_4_is_sealed_and_goes_on(tmp_path):
    old = restored("v4.sql", tmp_path / "old.db")
    with Store.open(str(old)) as store:
        summary = store.summary("old")
        assert summary.open_asks == (2, 3)  # one was let out of quarantine
        assert [(e.ask, e.rung) for e in summary.evaluations] == [(1, "tiny"), (1, "small")]
        assert [e.split for e in summary.final] == ["test"]
        with store.database.reading() as connection:
            rows = connection.execute(text("SELECT key, key_version FROM operator ORDER BY id"))
            versions = [(row.key, row.key_version) for row in rows]
    # The key of the last one came from elsewhere.
    assert [version for _, version in versions] == [KEY_VERSION, KEY_VERSION, 0]
    for _ in range(2):  # whole when it is opened again, and when it was gone on with
        with Store.open(str(old)) as store:
            worker = Worker()
            asked = store.lease_open(store.study(), worker.name)
            assert asked is not None
            store.tell(asked.id, TRAINED, ENVIRONMENT)
            worker.close()
    with Store.open(str(old), read_only=True) as store:
        assert [e.ask for e in store.summary().evaluations] == [1, 1, 2, 3]


def test_a_store_of_version_5_is_read_as_it_is(tmp_path):
    old = restored("v5.sql", tmp_path / "old.db")
    content = old.read_bytes()
    with Store.open(str(old), read_only=True) as store:
        assert store.version() == 5
        assert [e.accuracy for e in store.summary("old").evaluations] == [0.875]
    assert old.read_bytes() == content


def test_a_store_of_version_5_loses_the_table_that_nothing_used_and_goes_on(tmp_path):
    old = restored("v5.sql", tmp_path / "old.db")
    with Store.open(str(old)) as store, store.database.reading() as connection:
        assert "artifact" not in inspect(connection).get_table_names()
        before = store.summary("old")
        assert [e.accuracy for e in before.evaluations] == [0.875]
    with Store.open(str(old)) as store:
        worker = Worker()
        asked = store.lease_open(store.study(), worker.name)
        assert asked is not None
        assert (asked.ask, asked.text) == (2, "operator 2")
        store.tell(asked.id, TRAINED, ENVIRONMENT)
        worker.close()
    with Store.open(str(old), read_only=True) as store:
        assert [e.ask for e in store.summary().evaluations] == [1, 2]


def test_a_store_of_version_6_is_read_as_it_is_and_goes_on_with_tokens(tmp_path):
    old = restored("v6.sql", tmp_path / "old.db")
    content = old.read_bytes()
    with Store.open(str(old), read_only=True) as store:
        assert store.version() == 6
        assert store.workers() == []
        assert [e.accuracy for e in store.summary("old").evaluations] == [0.875]
    assert old.read_bytes() == content
    with Store.open(str(old)) as store:
        worker = Worker()
        asked = store.lease_open(store.study(), worker.name)
        assert asked is not None
        assert (asked.ask, asked.token) == (2, 1)
        store.tell(asked.id, TRAINED, ENVIRONMENT, worker.name, asked.token)
        assert store.summary("old").open_asks == ()
        worker.close()


def test_a_store_of_version_7_is_read_as_it_is_and_goes_on(tmp_path):
    old = restored("v7.sql", tmp_path / "old.db")
    content = old.read_bytes()
    with Store.open(str(old), read_only=True) as store:
        assert store.version() == 7
        assert [(w.tags, w.is_alive) for w in store.workers()] == [(("jetson",), False)]
        assert [e.accuracy for e in store.summary("old").evaluations] == [0.875]
    assert old.read_bytes() == content
    with Store.open(str(old)) as store:
        study, worker = store.study(), Worker()
        record = store.lease(study, worker.name)
        assert record is not None
        assert (record.ask, record.token) == (2, 3)
        worker.close()


def test_an_adaptation_of_version_8_is_read_as_it_is_and_goes_on(tmp_path):
    old = restored("v8.sql", tmp_path / "old.db")
    content = old.read_bytes()
    with Store.open(str(old), read_only=True) as store:
        assert store.version() == 8
        assert [e.kind for e in store.events(store.study("adapted"))].count("finding") == 2
    assert old.read_bytes() == content
    with Store.open(str(old)) as store:
        study, worker = store.study("adapted"), Worker()
        token = store.presence.drive(study, worker.name)
        assert token is not None
        found = store.findings(study, token)
        found.add("fit", "another slot", [2.5])
        with pytest.raises(UserError, match="has found 'fit' of 'another slot' before"):
            found.add("fit", "another slot", [3.5])
        worker.close()
    with Store.open(str(old), read_only=True) as store:
        values = [e.data["value"] for e in store.events(study) if e.kind == "finding"]
    assert values == [{"value": 0.9}, [1.5, 2], [2.5]]


def test_answers_that_version_9_took_back_stay_taken_back(tmp_path):
    """Its spot checks are gone; their settings mean nothing any more, and their log is read."""
    old = restored("v9.sql", tmp_path / "old.db")
    content = old.read_bytes()
    for read_only in (True, False, True):
        with Store.open(str(old), read_only=read_only) as store:
            study = store.study()
            assert [e.accuracy for e in store.evaluations(study)] == [0.875]
            assert store.open_proposals(study) == [(2, False), (3, False)]
            state = StudyState(study)
            store.follow(state)
            assert state.opened == {2, 3}
            assert StudySettings.from_json(study.settings).evaluations == 3
        if read_only:
            assert old.read_bytes() == content
        content = old.read_bytes()
    with Store.open(str(old)) as store:
        worker = Worker()
        found = store.lease(store.study(), worker.name)
        assert found is not None
        store.tell(found.id, TRAINED, ENVIRONMENT, worker.name, found.token)
        assert [e.ask for e in store.evaluations(store.study())] == [1, 2]
        worker.close()
    Store.open(str(old), read_only=True).close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE evaluation SET accuracy = 0.99 WHERE id = 2", "evaluation, row 2: its content"),
        ("UPDATE event SET kind = 'note' WHERE sequence = 2", "event, row .1, 2.: its digest"),
        ("UPDATE syno_schema SET written_by = '9'", "syno_schema, row 5"),
    ],
)
def test_what_is_damaged_in_a_store_of_version_5_stays_damaged(change, message, tmp_path):
    old = restored("v5.sql", tmp_path / "old.db", change)
    content = old.read_bytes()
    for read_only in (True, False):
        with pytest.raises(DamagedError, match=message):
            Store.open(str(old), read_only=read_only)
    assert old.read_bytes() == content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE operator SET text = replace(text, 'o3', 'o2') WHERE id = 2", "operator, row 2"),
        ("DELETE FROM evaluation WHERE rung_index = 1", "refers to a row of evaluation"),
        ("DELETE FROM evaluation WHERE proposal_id = 1", "refers to a row of evaluation"),
        ("UPDATE proposal SET state = 'asked' WHERE id = 2", "proposal, row 2: its state"),
        ("DELETE FROM event WHERE sequence = 5", "event, row .1, 5.: it is missing"),
        ("DELETE FROM event WHERE sequence > 3", "proposal, row 1"),
        ("DELETE FROM proposal WHERE ask = 3", "event, row .1, 15.: it cannot be read"),
        ("UPDATE event SET data = '{' WHERE sequence = 7", "event, row .1, 7.: it cannot be read"),
    ],
)
def test_what_is_damaged_in_an_old_store_is_not_sealed(change, message, tmp_path):
    old = restored("v4.sql", tmp_path / "old.db", change)
    with pytest.raises(DamagedError, match=message):
        Store.open(str(old))
    connection = sqlite3.connect(old)
    assert connection.execute("SELECT max(version) FROM syno_schema").fetchone() == (4,)
    connection.close()


def test_each_version_is_written_down_with_who_and_when(old):
    with Store.open(str(old)) as store, store.database.reading() as connection:
        rows = connection.execute(text("SELECT version, written_by, applied FROM syno_schema"))
        versions = [row.version for row in rows if row.written_by and row.applied]
    assert versions == list(range(1, schema.VERSION + 1))


def test_migrations_are_numbered_without_gaps_up_to_the_present_version():
    assert [m.version for m in MIGRATIONS] == list(range(2, schema.VERSION + 1))


def test_a_migration_that_fails_leaves_the_store_at_its_version(old, monkeypatch):
    last = MIGRATIONS[-1]
    failing = Migration(last.version, "fails", (last.statements[0], "NONSENSE"))
    broken = (*MIGRATIONS[:-1], failing)
    monkeypatch.setattr("syno.store.migrations.MIGRATIONS", broken)
    before = sqlite3.connect(old).execute("SELECT sql FROM sqlite_master").fetchall()
    with pytest.raises(UserError, match="NONSENSE"):
        Store.open(str(old))
    after = sqlite3.connect(old)
    assert after.execute("SELECT sql FROM sqlite_master").fetchall() == before
    assert after.execute("SELECT max(version) FROM syno_schema").fetchone() == (1,)
    after.close()


def test_an_old_store_is_not_changed_by_reading(old):
    content = old.read_bytes()
    with pytest.raises(UserError, match=r"has version 1 and this Syno needs version 10") as caught:
        Store.open(str(old), read_only=True)
    assert "this migrates it" in str(caught.value)
    assert old.read_bytes() == content


def test_a_store_of_a_newer_syno_is_refused_with_both_versions(tmp_path):
    path = tmp_path / "newer.db"
    Store.open(str(path)).close()
    row = {"version": 11, "written_by": "7.0", "applied": "2031-01-01", "definitions": "{}"}
    row["seal"] = seal_of_stored(schema.schema_version, row)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO syno_schema VALUES (?, ?, ?, ?, ?)", list(row.values()))
    connection.close()
    for read_only in (False, True):
        with pytest.raises(UserError) as caught:
            Store.open(str(path), read_only=read_only)
        assert "has version 11, this Syno reads up to version 10" in str(caught.value)
        assert "install that Syno or a later one" in str(caught.value)
