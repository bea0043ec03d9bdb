"""The contract, on every backend."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from postgresql import PASSWORD
from syno._util.errors import UserError
from syno.store import DamagedError, Store, Worker, schema

from .contract import StoreContract
from .sample import ENVIRONMENT, TRAINED, make_study
from .worker_contract import WorkerContract


class TestSqliteFile(StoreContract, WorkerContract):
    @pytest.fixture
    def url(self, tmp_path):
        return f"sqlite:///{tmp_path / 'store.db'}"

    def test_a_store_survives_closing(self, url):
        with Store.open(url) as store:
            made = make_study(store)
        with Store.open(url) as store:
            assert store.study() == made

    def test_two_openings_see_each_other(self, url):
        with Store.open(url) as first, Store.open(url) as second:
            study = make_study(first)
            worker = Worker()
            second.ask(study, 1, ("text", "key"), worker.name)
            assert [p.ask for p in first.proposals(study)] == [1]
            worker.close()


class TestSqliteInMemory(StoreContract):
    @pytest.fixture
    def url(self):
        return "sqlite://"


class TestPostgresql(StoreContract, WorkerContract):
    @pytest.fixture
    def url(self, postgresql):
        with create_engine(postgresql).begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
        return postgresql

    def test_a_server_that_does_not_answer_is_a_clear_error(self, postgresql):
        closed = "postgresql://nobody:secret@127.0.0.1:1/none"
        with pytest.raises(UserError, match="check that the server runs") as caught:
            Store.open(closed)
        assert "secret" not in str(caught.value)

    def test_a_wrong_password_is_a_message_without_it(self, postgresql):
        if PASSWORD not in postgresql:
            pytest.skip("no PostgreSQL here that tests started")
        wrong = postgresql.replace(PASSWORD, "another-secret")
        with pytest.raises(UserError, match="password authentication failed") as caught:
            Store.open(wrong)
        assert "another-secret" not in str(caught.value)

    def test_the_address_that_is_shown_has_no_password(self, url):
        with Store.open(url) as store:
            assert PASSWORD not in store.name
            assert store.url == url

    def test_a_clock_of_a_worker_does_not_matter(self, url, monkeypatch):
        """Leases are timed by the clock of the server, whatever a worker takes the time to be."""
        for wrong in ("1999-01-01T00:00:00.000000Z", "2099-01-01T00:00:00.000000Z"):
            monkeypatch.setattr("syno.store.database.utc_now", lambda wrong=wrong: wrong)
            with Store.open(url) as store:
                study = make_study(store, f"study of {wrong[:4]}")
                store.ask(study, 1, ("text", "key"), None)
                store.lease(study, "another:1:1:1")
                assert store.open_proposals(study) == [(1, True)]
                assert study.created[:2] == "20"
                assert study.created[:4] != wrong[:4]

    def test_damage_on_a_server_is_found(self, url):
        with Store.open(url) as store:
            study = make_study(store)
            worker = Worker()
            for number in (1, 2, 3):
                asked = store.ask(study, number, (f"text {number}", f"key {number}"), worker.name)
                store.tell(asked.id, TRAINED, ENVIRONMENT)
            worker.close()
        with create_engine(url).begin() as connection:
            connection.execute(text("UPDATE evaluation SET accuracy = 0.99 WHERE id = 2"))
        for options in ({}, {"read_only": True}):
            with pytest.raises(DamagedError, match="table evaluation, row 2") as caught:
                Store.open(url, **options)
            assert "what to do: restore the database from a copy" in str(caught.value)

    def test_a_store_of_version_4_on_a_server_is_sealed(self, url):
        with create_engine(url).begin() as connection:
            for statement in version_4():
                connection.exec_driver_sql(statement)
        with Store.open(url) as store:
            assert store.version() == schema.VERSION
            assert store.summary("old").open_asks == (2, 3)
        with Store.open(url, read_only=True) as store:  # looked at again
            assert [e.ask for e in store.summary("old").evaluations] == [1, 1]


def version_4() -> list[str]:
    """The golden store as PostgreSQL takes it: tables in the order of their references."""
    content = (Path(__file__).parent / "data" / "v4.sql").read_text()
    content = content.replace("BLOB", "BYTEA").replace("X'", "'\\x")
    found = [s.strip() for s in content.split(";\n") if "CREATE" in s or "INSERT" in s]
    found = [re.sub(r"^(--.*\n)+|BEGIN TRANSACTION;\n?", "", s).strip() for s in found]
    order = [*(t.name for t in schema.metadata.sorted_tables), "artifact"]  # gone since version 6

    def place(statement: str) -> tuple[int, int]:
        kind = ("CREATE TABLE", "INSERT INTO", "CREATE INDEX")
        name = re.search(r'(?:TABLE|INTO|ON) "?(\w+)', statement)
        assert name is not None
        return next(i for i, k in enumerate(kind) if statement.startswith(k)), order.index(name[1])

    found = sorted(found, key=place)
    # Whether a verification passed is a truth value there.
    passed = (("'torch',0,1,", "'torch',0,true,"), (f"'{'ab' * 16}',1,", f"'{'ab' * 16}',true,"))
    return [s.replace(*passed[0]).replace(*passed[1]) for s in found]
