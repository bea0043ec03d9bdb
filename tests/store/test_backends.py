"""The contract, on every backend."""

from __future__ import annotations

import pytest
from sqlalchemy import create_engine, text

from syno._errors import UserError
from syno.store import Store, Worker

from .contract import StoreContract
from .sample import make_study


class TestSqliteFile(StoreContract):
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


class TestPostgresql(StoreContract):
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
