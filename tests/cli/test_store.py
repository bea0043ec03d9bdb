"""`syno store`: damage is listed, and what is intact is saved."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno.cli.main import cli


def syno(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["store", *arguments])


@pytest.fixture
def damaged(runs: str) -> str:
    """The answer to the second operator is not what was written."""
    with sqlite3.connect(runs) as connection:
        connection.execute("UPDATE evaluation SET reason = 'none' WHERE id = 3")
    connection.close()
    return runs


def test_a_store_that_is_whole_is_said_to_be(runs: str) -> None:
    done = syno("check", runs)
    assert (done.exit_code, done.stdout) == (0, f"{runs} is intact: 1 studies, 8 events\n")
    content = json.loads(syno("check", runs, "--json").stdout)
    assert content["whole"] is True
    assert content["events"] == {"digits-1": 8}
    assert content["findings"] == []


def test_damage_is_listed_with_what_can_be_saved(damaged: str) -> None:
    done = syno("check", damaged)
    assert done.exit_code == 1
    assert "table evaluation, row 3: its content is not what was written" in done.stdout
    assert "can be recovered: study 'digits-1': 2 of 3 trials" in done.stdout
    assert f"next: syno store recover --store {damaged} NEW" in done.stderr
    content = json.loads(syno("check", damaged, "--json").stdout)
    assert content["whole"] is False
    assert content["can_be_saved"] == ["study 'digits-1': 2 of 3 trials"]


@pytest.mark.parametrize(
    "command",
    [
        ("status", "STORE"),
        ("report", "STORE"),
        ("select", "--store", "STORE"),
        ("show", "1e1e1e", "--store", "STORE"),
        ("export", "1e1e1e", "--store", "STORE", "-o", "op.py"),
        ("resume", "STORE"),
        ("resume", "STORE", "--dry-run"),
        ("search", "--data", "digits", "--evaluations", "1", "--store", "STORE"),
    ],
)
def test_every_command_refuses_a_damaged_store(
    damaged: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = Path(damaged).read_bytes()
    done = CliRunner().invoke(cli, [damaged if word == "STORE" else word for word in command])
    assert done.exit_code == 2
    assert f"error: the store '{damaged}' is damaged: table evaluation, row 3" in done.stderr
    assert f"what to do: `syno store recover --store {damaged} NEW`" in done.stderr
    assert Path(damaged).read_bytes() == before


def test_what_is_intact_is_saved(damaged: str, tmp_path: Path) -> None:
    new = tmp_path / "saved.db"
    done = syno("recover", damaged, str(new))
    assert done.exit_code == 0
    assert "recovered study 'digits-1': 2 of 3 trials" in done.stdout
    assert f"next: syno resume --store {new}" in done.stderr
    assert syno("check", str(new)).exit_code == 0
    again = syno("recover", damaged, str(new))
    assert again.exit_code == 2
    assert "already exists" in again.stderr
    content = json.loads(syno("recover", damaged, str(tmp_path / "2.db"), "--json").stdout)
    assert content["studies"] == [{"name": "digits-1", "trials": 2, "of_trials": 3, "events": 7}]


def test_nothing_to_save_is_a_negative_result(runs: str, tmp_path: Path) -> None:
    with sqlite3.connect(runs) as connection:
        connection.execute("UPDATE study SET settings = '{'")
    connection.close()
    done = syno("recover", runs, str(tmp_path / "saved.db"))
    assert done.exit_code == 1
    assert "no study could be recovered" in done.stderr
    rest = json.loads((tmp_path / "saved.db.rest.json").read_text())
    assert len(rest["rows"]["evaluation"]) == 3
