"""A store that is not as it was written is refused: which row, and what to do. Copies of stores."""

from __future__ import annotations

import dataclasses
import json
import re
import sqlite3
from pathlib import Path

import pytest

import syno.store
from syno._util.errors import InternalError, UserError
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.store import DamagedError, Snapshots, Store, Worker, back_up, schema
from syno.store.operators import KEY_VERSION, Keys
from syno.store.records import digest
from syno.store.rows import change
from syno.store.seals import seal_of_stored
from syno.store.snapshot import INTERVAL_S

from .sample import BASELINE, ENVIRONMENT, TRAINED

SHIFTED = """syno operator 1
out [N, C_out, H]
in [N, C_in, H]
reduce C_in -> r0
contract o1:drop r0:keep
shift o2 1 -> c0
match o0 r0 c0
"""
SPECIFICATION = Specification(
    "[N, C_in, H]",
    "[N, C_out, H]",
    ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
    bindings=[{"C_in": 8, "C_out": 4, "H": 8}],
    passed_through=[(0, 0)],
)


def fill(store: Store, name: str = "study", trials: int = 8) -> None:
    """A study with a baseline and trials, the last one open."""
    study = store.create_study(
        name,
        specification=(SPECIFICATION.key, json.loads(SPECIFICATION.to_json())),
        settings={"evaluations": trials},
        seed=3,
    )
    store.append_event(study, "started", {})
    worker = Worker()
    first = store.ask(study, 0, None, worker.name)
    store.tell(first.id, BASELINE, ENVIRONMENT)
    operator = Operator.from_text(SHIFTED, SPECIFICATION)
    for number in range(1, trials + 1):
        asked = store.ask(study, number, (SHIFTED + "\n" * number, operator.key), worker.name)
        if number < trials:
            store.tell(asked.id, dataclasses.replace(TRAINED, seed=number), ENVIRONMENT)
    worker.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store.open(str(tmp_path / "store.db")) as store:
        fill(store)
    return tmp_path / "store.db"


def sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        assert connection.execute(statement).rowcount != 0, statement
    connection.commit()
    connection.close()


def refusal(path: Path, **options: bool) -> str:
    with pytest.raises(DamagedError) as caught:
        Store.open(str(path), **options)
    return str(caught.value)


@pytest.mark.parametrize("options", [{}, {"create": False}, {"read_only": True}])
def test_one_bit_of_an_operator_names_its_row(path, options):
    content = path.read_bytes()
    line = b"shift o2 1"
    assert content.count(line) == 8
    # 1 and 3 differ in one bit.
    path.write_bytes(content.replace(line, b"shift o2 3", 1))
    message = refusal(path, **options)
    assert re.search(r"is damaged: table operator, row \d: its content is not what was", message)
    assert f"`sqlite3 {path} .recover` reads rows" in message


def test_a_key_that_does_not_follow_from_the_text_names_the_row(path):
    """Also where the seal fits: whoever wrote it wrote a wrong key."""
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    row = dict(connection.execute("SELECT * FROM operator WHERE id = 4").fetchone())
    row["text"] = row["text"].replace("shift o2 1", "shift o2 3")
    row["digest"] = digest(row["text"])
    row["seal"] = seal_of_stored(schema.operator, row)
    connection.execute(
        "UPDATE operator SET text = :text, digest = :digest, seal = :seal WHERE id = :id", row
    )
    connection.commit()
    connection.close()
    key = Keys().derived(row["text"], SPECIFICATION.to_json())
    assert f"table operator, row 4: its text gives the key {key}" in refusal(path)


def test_the_key_of_an_operator_has_the_version_of_its_algorithm(path):
    """When this key changes, raise KEY_VERSION: keys in older stores stay what they are."""
    with Store.open(str(path), read_only=True) as store:
        found = {(p.key, p.text) for p in store.proposals(store.study()) if p.key}
    assert {key for key, _ in found} == {"bec258138a8dbcfe299f8b184c5abf2f"}
    assert KEY_VERSION == 1


def test_a_key_of_another_algorithm_is_no_damage(path):
    connection = sqlite3.connect(path)
    connection.row_factory = sqlite3.Row
    row = dict(connection.execute("SELECT * FROM operator WHERE id = 1").fetchone())
    assert row["key_version"] == KEY_VERSION
    connection.close()
    with Store.open(str(path)) as store:
        worker = Worker()
        study = store.create_study(
            "own", specification=("5bec", {"input": "[H]"}), settings={}, seed=1
        )
        store.ask(study, 1, ("text of one's own", "key of one's own"), worker.name)
        worker.close()
    with Store.open(str(path), read_only=True) as store:
        assert store.proposals(store.study("own"))[0].key == "key of one's own"


@pytest.mark.parametrize("byte", [0, 17, 18, 19, 20, 21, 44, 56, 59])
def test_a_damaged_header_is_noticed_or_changes_nothing(path, byte):
    with Store.open(str(path), read_only=True) as store:
        expected = store.summary().to_json()
    content = bytearray(path.read_bytes())
    content[byte] ^= 0x40
    path.write_bytes(content)
    try:
        with Store.open(str(path), read_only=True) as store:
            assert store.summary().to_json() == expected
    except DamagedError as error:
        assert error.found


@pytest.mark.parametrize("gone", [1, 1275, 4096])
def test_a_store_that_was_cut_is_refused(path, gone):
    content = path.read_bytes()
    path.write_bytes(content[:-gone])
    assert "is damaged: " in refusal(path)
    assert path.read_bytes() == content[:-gone]


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ("UPDATE study SET seed = 4", "table study, row 1"),
        ("UPDATE study SET settings = '{}'", "table study, row 1"),
        ("UPDATE study SET events = events - 1", "table study, row 1"),
        ("UPDATE specification SET content = '{'", "table specification, row 1"),
        ("UPDATE event SET data = 'x' WHERE sequence = 3", r"table event, row .1, 3."),
        ("UPDATE event SET created = '2' WHERE sequence = 3", r"table event, row .1, 3."),
        ("DELETE FROM event WHERE sequence = 18", "its log has 17 events that follow each other"),
        ("DELETE FROM event WHERE sequence = 2", r"table event, row .1, 2.: it is missing"),
        ("UPDATE proposal SET attempts = 5 WHERE ask = 8", "table proposal, row 9"),
        ("UPDATE proposal SET lease = 'a:b' WHERE ask = 8", "table proposal, row 9"),
        ("UPDATE evaluation SET accuracy = 'high' WHERE id = 3", "table evaluation, row 3"),
        ("UPDATE evaluation SET accuracy = CAST(x'ff' AS TEXT) WHERE id = 3", "evaluation, row 3"),
        ("UPDATE environment SET threads = 8", "table environment, row 1"),
        ("UPDATE baseline SET median_ms = 3 WHERE id = 2", "table baseline, row 2"),
        ("UPDATE measurement SET ratio = 0.1 WHERE id = 2", "table measurement, row 2"),
        ("DELETE FROM measurement WHERE id = 2", "table measurement, row 2: it is missing"),
        ("DELETE FROM proposal WHERE ask = 8", "table proposal, row 9: it is missing"),
        ("DELETE FROM evaluation WHERE id = 8", "row of evaluation that is missing"),
        ("DROP INDEX proposal_by_state", "index proposal_by_state: it is missing"),
        ("CREATE TABLE songs (title TEXT)", "table songs: it does not belong to Syno"),
        ("ALTER TABLE baseline ADD COLUMN x TEXT", "table baseline: its definition"),
        ("DROP TABLE quarantine", "table quarantine: it is missing"),
        ("DROP TABLE syno_schema", "table syno_schema: it is missing"),
        ("DELETE FROM syno_schema", "table syno_schema: it has no version"),
        ("UPDATE syno_schema SET version = 4", "table syno_schema, row 4"),
        ("UPDATE syno_schema SET version = 133", "table syno_schema, row 133"),
    ],
)
def test_a_change_is_found_where_it_is(path, change, row):
    sql(path, change)
    content = path.read_bytes()
    found = refusal(path)
    assert re.search(row, found), found
    assert path.read_bytes() == content


def test_a_row_that_no_log_knows_is_found(path):
    columns = "evaluation_id, environment_id, median_ms, spread_ms, created, seal"
    sql(path, f"INSERT INTO baseline ({columns}) SELECT {columns} FROM baseline WHERE id = 2")
    assert re.search(r"table baseline, row \d+: no log mentions it", refusal(path))


def test_what_is_in_free_space_does_not_matter(path):
    with path.open("ab") as stream:
        stream.write(b"\xff" * 4096)
    with Store.open(str(path)) as store:
        assert len(store.summary().trained) == 7


@pytest.mark.parametrize("damage", ["flip", "cut", "header", "remove"])
def test_a_damaged_log_gives_an_earlier_state_or_is_refused(path, tmp_path, damage):
    """SQLite leaves out what is damaged in its log; what is left is whole."""
    copied = tmp_path / "copied.db"
    with Store.open(str(path)) as store:  # what it writes stays in the log while it is open
        fill(store, "second")
        for ending in ("", "-wal", "-shm"):
            Path(f"{copied}{ending}").write_bytes(Path(f"{path}{ending}").read_bytes())
        events = {study.name: store.events(study) for study in store.studies()}
    log = Path(f"{copied}-wal")
    content = bytearray(log.read_bytes())
    if damage == "flip":
        content[-2000] ^= 1
    elif damage == "cut":
        del content[-1275:]
    elif damage == "header":
        content[17] ^= 1
    log.write_bytes(content)
    if damage == "remove":
        log.unlink()
    try:
        with Store.open(str(copied)) as store:
            for study in store.studies():
                found = store.events(study)
                assert found == events[study.name][: len(found)]
    except DamagedError as error:
        assert error.found


def test_a_log_that_ends_in_the_middle_of_a_frame_is_that_of_a_killed_process(path, tmp_path):
    copied = tmp_path / "copied.db"
    with Store.open(str(path)) as store:
        fill(store, "second")
        for ending in ("", "-wal", "-shm"):
            Path(f"{copied}{ending}").write_bytes(Path(f"{path}{ending}").read_bytes())
    with Path(f"{copied}-wal").open("ab") as stream:
        stream.write(b"\0" * 1000)
    with Store.open(str(copied), read_only=True) as store:
        assert [study.name for study in store.studies()] == ["study", "second"]


def test_a_search_that_writes_is_never_called_damaged(path):
    """A reader looks at file, log and index while another process adds to them."""
    with Store.open(str(path)) as store:
        study = store.study()
        for number in range(25):
            store.append_event(study, "note", {"number": number, "long": "x" * 3000})
            with Store.open(str(path), read_only=True) as other:
                assert len(other.events(study)) == 19 + number


def test_a_copy_is_whole_while_others_write(path, tmp_path):
    with Store.open(str(path)) as store:
        study = store.study()
        for number in range(5):
            store.append_event(study, "note", {"number": number})
            target = back_up(store)
            assert target == Path(f"{path}.backup")
            with Store.open(str(target), read_only=True) as copied:
                assert copied.events(study) == store.events(study)
        assert back_up(store, tmp_path / "other.db").is_file()
        with pytest.raises(UserError, match="is the store itself"):
            back_up(store, path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.db", "store.db", "store.db.backup"]
    with Store.open("sqlite://") as store, pytest.raises(UserError, match="is no file"):
        back_up(store)


def test_a_damaged_store_does_not_replace_its_copy(path):
    with Store.open(str(path)) as store:
        target = back_up(store)
        content = target.read_bytes()
        sql(path, "UPDATE evaluation SET accuracy = 0.99 WHERE id = 6")
        with pytest.raises(DamagedError, match="table evaluation, row 6"):
            back_up(store)
    assert target.read_bytes() == content
    assert re.search(r"what to do: '.*store\.db\.backup' is a copy of 20\d\d-", refusal(path))
    path.write_bytes(content)
    with Store.open(str(path)) as store:
        assert len(store.summary().trained) == 7


def test_a_long_search_copies_its_store_at_intervals(path, monkeypatch):
    now, told = [0.0], []
    with Store.open(str(path)) as store:
        snapshots = Snapshots(store, told.append, lambda: now[0])
        target = Path(f"{path}.backup")
        snapshots.step()
        assert not target.exists()
        now[0] = INTERVAL_S
        snapshots.step()
        assert target.is_file()
        target.unlink()
        snapshots.step()
        assert not target.exists()
        target.mkdir()  # cannot be written
        (target / "file").touch()
        now[0] = 2 * INTERVAL_S
        snapshots.step()
        (note,) = told
        assert note.startswith("no copy of the store: ")


def test_rows_are_written_with_their_seals_alone():
    """A statement that changes a row and not its seal would damage the store: only `rows.py` and
    the modules of seals themselves insert and update."""
    own = {"rows.py", "sealing.py", "migrations.py"}
    for file in sorted(Path(syno.store.__file__).parent.glob("*.py")):
        found = re.findall(r"\b(?:insert|update)\(\s*schema\.(\w+)", file.read_text())
        allowed = {"log.py": ["event", "study"], "store.py": ["schema_version"]}
        assert file.name in own or found == allowed.get(file.name, []), file.name


def test_an_expression_cannot_change_a_sealed_row(path):
    with Store.open(str(path)) as store, store.database.writing() as connection:
        attempts = schema.proposal.c.attempts
        with pytest.raises(InternalError, match="by values, or by functions of the row"):
            change(connection, schema.proposal, attempts == 1, attempts=attempts + 1)
