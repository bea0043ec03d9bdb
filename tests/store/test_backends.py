"""The contract, on every backend."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

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


@pytest.fixture(scope="module")
def postgresql():
    """The URL of an empty database: SYNO_TEST_POSTGRESQL, or a server started for these tests."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    given = os.environ.get("SYNO_TEST_POSTGRESQL")
    if given:
        yield given.replace("postgresql://", "postgresql+psycopg://")
        return
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        pytest.skip("no PostgreSQL here: install it, or name a database in SYNO_TEST_POSTGRESQL")
    programs_dir = programs[-1].parent
    folder = Path(tempfile.mkdtemp(prefix="syno-postgresql-"))  # short: it holds a socket
    as_user: dict[str, object] = {}
    if os.geteuid() == 0:  # the server refuses to run as root
        as_user = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        shutil.chown(folder, "nobody")
    data, socket = folder / "data", folder

    def run(program: str, *arguments: str) -> None:
        command = [str(programs_dir / program), "-D", str(data), *arguments]
        subprocess.run(
            command, check=True, stdout=subprocess.DEVNULL, cwd=folder, timeout=60, **as_user
        )

    run("initdb", "--no-sync", "-A", "trust", "-U", "syno", "-E", "UTF8")
    options = f"-c listen_addresses= -c unix_socket_directories={socket} -c fsync=off"
    run("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
    try:
        yield f"postgresql+psycopg://syno@/postgres?host={socket}"
    finally:
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(folder)
