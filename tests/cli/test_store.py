"""`syno store`: damage is listed, and a store is copied."""

from __future__ import annotations

import json
import re
import shutil
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


def test_damage_is_listed_with_what_to_do(damaged: str) -> None:
    done = syno("check", damaged)
    assert done.exit_code == 1
    assert "table evaluation, row 3: its content is not what was written" in done.stdout
    assert "what to do: restore a copy; `sqlite3" in done.stderr
    content = json.loads(syno("check", damaged, "--json").stdout)
    assert content["whole"] is False
    assert content["findings"][0].startswith("table evaluation, row 3")


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
    assert f"what to do: restore a copy; `sqlite3 {damaged} .recover` reads rows" in done.stderr
    assert Path(damaged).read_bytes() == before


def test_a_copy_is_named_when_the_store_is_damaged(runs: str, tmp_path: Path) -> None:
    done = syno("backup", "--store", runs)
    copied = Path(f"{runs}.backup")
    assert (done.exit_code, done.stdout) == (0, f"wrote {copied}\n")
    with sqlite3.connect(runs) as connection:
        connection.execute("UPDATE evaluation SET reason = 'none' WHERE id = 3")
    connection.close()
    said = syno("check", runs).stderr
    assert re.search(r"what to do: '.*\.backup' is a copy of 20\d\d-.*: move the store away", said)
    content = copied.read_bytes()
    again = syno("backup", "--store", runs)
    assert again.exit_code == 2
    assert "is damaged: table evaluation, row 3" in again.stderr
    assert copied.read_bytes() == content
    shutil.copy(copied, runs)
    assert syno("check", runs).exit_code == 0
    other = tmp_path / "other.db"
    found = json.loads(syno("backup", "--store", runs, "--out", str(other), "--json").stdout)
    assert found == {"store": runs, "backup": str(other)}
    assert "is the store itself" in syno("backup", "--store", runs, "--out", runs).stderr
