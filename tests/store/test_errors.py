"""What a user meets when the store cannot be used, by text; and that nothing finished is lost."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from sqlalchemy import event as events
from sqlalchemy.exc import OperationalError

from syno._util.errors import UserError
from syno.store import Store, Worker
from syno.store.check import findings

from .sample import ENVIRONMENT, TRAINED, make_study

AS_ROOT = os.geteuid() == 0


def refused(url: str | Path, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        Store.open(str(url), **options)
    return str(caught.value)


def test_a_file_that_is_no_database_is_not_a_store(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, much longer than a header of a database\n" * 20)
    content = path.read_bytes()
    message = refused(path)
    assert f"'{path}' is not a Syno store: the file is not a SQLite database" in message
    assert "what to do" in message
    assert path.read_bytes() == content


def test_a_database_of_another_program_is_not_a_store(tmp_path):
    path = tmp_path / "music.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()
    assert "is not a Syno store: a database with other tables (songs)" in refused(path)
    tables = sqlite3.connect(path).execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("songs",)]


def test_a_missing_store_is_not_made_by_reading(tmp_path):
    path = tmp_path / "none.db"
    assert f"there is no store '{path}'" in refused(path, read_only=True)
    assert "there is no store" in refused(path, create=False)
    assert not path.exists()


def test_an_empty_file_becomes_a_store_but_is_none_to_read(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    assert "it is empty" in refused(path, read_only=True)
    with Store.open(str(path)) as store:
        make_study(store)


def test_a_folder_is_no_store(tmp_path):
    assert "is a folder" in refused(tmp_path)


def test_a_store_in_a_folder_that_does_not_exist_is_refused(tmp_path):
    message = refused(tmp_path / "no" / "runs.db")
    assert f"there is no folder '{tmp_path / 'no'}'" in message


@pytest.mark.parametrize("url", ["", "http://host/x", "mysql://u@h/d", "://"])
def test_an_address_of_another_kind_is_refused(url):
    message = refused(url)
    assert "expected: a file such as runs.db" in message


def test_a_store_locked_by_another_writer_says_so_after_the_time_out(tmp_path):
    path = tmp_path / "store.db"
    with Store.open(str(path), timeout=0.2) as store:
        study = make_study(store)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        message = "is locked: another process has been writing to it for more than 0.2 s"
        with pytest.raises(UserError, match=message):
            store.append_event(study, "note", {})
        assert message in refused(path, timeout=0.2)
        assert store.studies() == [study]  # readers do not wait for the writer
        other.execute("ROLLBACK")
        other.close()
        assert store.append_event(study, "note", {}) == 1


def test_a_damaged_store_says_so(tmp_path):
    path = tmp_path / "store.db"
    with Store.open(str(path)) as store:
        make_study(store)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(UserError, match="is damaged"), Store.open(str(path)) as store:
        store.studies()


@pytest.fixture
def shelf():
    """A folder that a user without rights can reach."""
    with tempfile.TemporaryDirectory(prefix="syno-shelf-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
def test_a_store_that_may_not_be_written_is_still_read(shelf, folder_mode):
    path = shelf / "store.db"
    with Store.open(str(path)) as store:
        make_study(store, "kept")
    path.chmod(0o444)
    shelf.chmod(folder_mode)

    def use() -> list[str]:
        message = refused(path)
        with Store.open(str(path), read_only=True) as store:
            return [message, *(study.name for study in store.studies())]

    message, *studies = as_plain_user(use)
    assert "cannot be written: the file or its folder is read-only" in message
    assert studies == ["kept"]


def test_a_store_cannot_be_made_in_a_read_only_folder(shelf):
    shelf.chmod(0o555)
    (message,) = as_plain_user(lambda: [refused(shelf / "new.db")])
    assert "cannot be opened or created" in message
    assert "you may read and write there" in message


def as_plain_user(use: Callable[[], list[str]]) -> list[str]:
    """What `use` gives in a child process without the rights of root, who may write anything."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        result = ["the child failed"]
        try:
            if AS_ROOT:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            result = use()
        except BaseException as error:
            result = [f"the child failed: {error!r}"]
        finally:
            os.write(writer, json.dumps(result).encode())
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        content = stream.read()
    os.waitpid(child, 0)
    return list(json.loads(content))


def _fill(store: Store) -> tuple[int, str]:
    """Stores answers until the disk is full; gives how many were told and the message."""
    study = make_study(store)
    worker = Worker()
    told = 0
    try:
        with pytest.raises(UserError) as caught:
            while told < 2000:
                asked = store.ask(study, told + 1, (f"text {told} " * 200, "key"), worker.name)
                store.tell(asked.id, TRAINED, ENVIRONMENT)
                told += 1
        return told, str(caught.value)
    finally:
        worker.close()


def _check_full(told: int, message: str) -> None:
    assert told > 5
    assert "the disk is full while writing the store" in message
    assert "what was stored before is safe" in message
    assert "syno resume" in message


def test_a_full_database_loses_no_answer_that_was_told(tmp_path):
    path = tmp_path / "store.db"
    with Store.open(str(path)) as store:

        @events.listens_for(store.database.engine, "engine_connect")
        def limit(connection):
            connection.connection.dbapi_connection.execute("PRAGMA max_page_count = 100")

        told, message = _fill(store)
    _check_full(told, message)
    with Store.open(str(path)) as store:
        assert len(store.summary().trained) == told


@pytest.mark.skipif(not AS_ROOT, reason="only root may mount a small file system")
def test_a_full_disk_loses_no_answer_that_was_told(tmp_path, small_disk):
    with small_disk(tmp_path / "disk", "1m") as disk:
        path = disk / "store.db"
        with Store.open(str(path)) as store:
            told, message = _fill(store)
            _check_full(told, message)
            assert len(store.summary().trained) == told
        with Store.open(str(path), read_only=True) as store:
            assert len(store.summary().trained) == told
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        with Store.open(str(path)) as store:  # with room again, it goes on
            worker = Worker()
            study = store.study()
            asked = store.lease_open(study, worker.name)
            if asked is None:
                asked = store.ask(study, told + 1, ("text", "key"), worker.name)
            store.tell(asked.id, TRAINED, ENVIRONMENT)
            assert len(store.summary().trained) == told + 1
            worker.close()


def test_a_store_on_a_network_file_system_is_read_and_not_written(tmp_path, monkeypatch):
    path = tmp_path / "a folder" / "store.db"
    path.parent.mkdir()
    Store.open(str(path)).close()
    mounted = str(path.parent).replace(" ", "\\040")
    lines = [
        "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw",
        f"40 22 0:44 / {mounted} rw,relatime - nfs4 server:/home rw",
        f"41 22 0:45 / {mounted}er rw,relatime - tmpfs none rw",
    ]
    monkeypatch.setattr("syno.store.database._mounts", lambda: lines)
    with pytest.raises(UserError, match=r"a network file system \(nfs4\)") as caught:
        Store.open(str(path))
    assert "--store postgresql://" in str(caught.value)
    with Store.open(str(path), read_only=True) as store:
        assert store.studies() == []
    with Store.open(str(tmp_path / "store.db")) as store:
        assert store.studies() == []


def test_a_server_that_is_lost_while_its_store_is_checked_is_no_damage():
    lost = OperationalError("SELECT", {}, Exception("closed"), connection_invalidated=True)
    connection = Mock(**{"dialect.name": "postgresql"})
    connection.execute.side_effect = connection.exec_driver_sql.side_effect = lost
    with pytest.raises(OperationalError):
        findings(connection)
