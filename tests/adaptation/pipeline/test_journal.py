"""The journal of an adaptation: one process at a time, and each finding once."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import exc, insert

from syno import UserError
from syno.adaptation.pipeline.journal import AdaptationJournal, open_journal
from syno.store import DriverLostError, Store, schema


def opened(store: Store, name: str | None = "one"):
    return open_journal(store, name, "net", {}, 0)


def findings(store: Store, name: str = "one") -> list[object]:
    events = store.events(store.study(name))
    return [(e.data["key"], e.data["value"]) for e in events if e.kind == "finding"]


@pytest.fixture(params=["runs.db", None])
def store(request, tmp_path):
    url = str(tmp_path / request.param) if request.param else "sqlite://"
    with Store.open(url) as found:
        yield found


def test_a_second_process_is_refused_and_continues_when_the_first_one_ends(store):
    with opened(store) as first:
        first.put("fit", "a", 1)
        with (
            pytest.raises(UserError, match=r"another process works on the adaptation 'one'.*\n"),
            opened(store),
        ):
            pass
        first.put("fit", "b", 2)
    with opened(store) as second:
        assert second.once("fit", "a", lambda: 3) == 1
    assert findings(store) == [("a", 1), ("b", 2)]


def test_an_adaptation_that_failed_is_free(store):
    with pytest.raises(ArithmeticError), opened(store):
        raise ArithmeticError
    with opened(store) as again:
        again.put("fit", "a", 1)


def test_adaptations_without_a_name_are_two(store):
    with opened(store, None) as first, opened(store, None) as second:
        assert (first.study.name, second.study.name) == ("adapt-net-1", "adapt-net-2")


def test_of_many_that_begin_at_once_one_works(tmp_path):
    url = str(tmp_path / "runs.db")
    Store.open(url).close()
    start, done = threading.Barrier(6), threading.Barrier(6)
    said: list[str] = []

    def work(number: int) -> None:
        with Store.open(url) as store:
            start.wait()
            try:
                with opened(store) as journal:
                    journal.once("fit", "a", lambda: number)
                    done.wait()
            except UserError as error:
                said.append(str(error).partition("\n")[0])
                done.wait()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(said) == 5
    assert all("another process works on the adaptation 'one'" in each for each in said)
    with Store.open(url) as store:
        assert len(findings(store)) == 1


_HOLD = """
import sys, time
from syno.adaptation.pipeline.journal import open_journal
from syno.store import Store
with Store.open(sys.argv[1]) as store, open_journal(store, "one", "net", {}, 0) as journal:
    journal.put("fit", "a", 1)
    print("holds it", flush=True)
    sys.stdin.read()
"""


def test_one_that_was_killed_is_continued_at_once(tmp_path):
    url = str(tmp_path / "runs.db")
    command = [sys.executable, "-c", _HOLD, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"holds it\n"
        with Store.open(url) as store:
            with pytest.raises(UserError, match="another process works"), opened(store):
                pass
            process.kill()
            process.wait()
            with opened(store) as journal:
                assert journal.get("fit", "a") == 1


def test_one_that_lost_its_lease_writes_nothing_more(store, monkeypatch):
    with opened(store) as first:
        first.put("fit", "a", 1)
        monkeypatch.setattr("syno.store.presence.leases.is_held", lambda *_, **__: False)
        with opened(store) as second:
            for write in (
                lambda: first.put("fit", "b", 2),
                lambda: first.once("fit", "b", lambda: 2),
                first.started,
                lambda: first.stopped("complete"),
            ):
                with pytest.raises(DriverLostError):
                    write()
            second.put("fit", "b", 3)
    assert findings(store) == [("a", 1), ("b", 3)]


def test_the_database_has_each_finding_once(store):
    with opened(store) as journal:
        journal.put("fit", "a", 1)
        blind = AdaptationJournal(store, journal.study, 1)
        blind._found._done.clear()
        with pytest.raises(UserError, match="has found 'fit' of 'a' before"):
            blind.put("fit", "a", 2)
        with store.database.reading() as connection:
            row = connection.execute(schema.finding.select()).mappings().one()
        with pytest.raises((UserError, exc.IntegrityError)), store.database.writing() as connection:
            connection.execute(insert(schema.finding).values(**{**row, "id": 9}))
    assert findings(store) == [("a", 1)]
    with opened(store, "two") as journal:  # of another adaptation
        journal.put("fit", "a", 2)


def test_a_finding_that_was_deleted_or_added_is_damage(tmp_path: Path):
    from syno.store import DamagedError

    path = str(tmp_path / "runs.db")
    for change in ("DELETE FROM finding", "INSERT INTO finding (study_id, digest) VALUES (1, 'x')"):
        Path(path).unlink(missing_ok=True)
        with Store.open(path) as store, opened(store) as journal:
            journal.put("fit", "a", 1)
        import sqlite3

        with sqlite3.connect(path) as connection:
            connection.execute(change)
        connection.close()
        with pytest.raises(DamagedError, match="table finding, row"):
            Store.open(path)


def test_findings_of_goals_for_other_resources_stand_beside_each_other(store):
    with opened(store) as journal:
        journal.scope(["macs"]).put("fit", "a", 1)
        journal.put("pool", "", [])
        assert journal.scope(["macs"]).get("fit", "a") == 1
        assert journal.scope(["latency"]).get("fit", "a") is None
        assert journal.scope(["latency"]).once("fit", "a", lambda: 2) == 2
    with opened(store) as again:
        assert again.scope(["latency"]).get("fit", "a") == 2
        assert again.scope(["macs"]).get("fit", "a") == 1


def test_findings_from_before_there_were_scopes_belong_to_all_goals(store):
    with opened(store) as journal:
        journal.put("pool", "", [])
        journal.put("fit", "a", 1)
        assert journal.scope(["macs"]).get("fit", "a") == 1
        assert journal.scope(["latency"]).get("fit", "a") == 1
