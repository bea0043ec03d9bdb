"""`syno doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from syno import installation
from syno.cli.main import cli


def checks(*arguments: str) -> tuple[int, dict[str, dict[str, str]]]:
    result = CliRunner().invoke(cli, ["doctor", "--json", *arguments])
    return result.exit_code, {entry["name"]: entry for entry in json.loads(result.stdout)}


def test_a_sound_installation_is_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNO_CACHE", str(tmp_path))
    code, found = checks("--store", str(tmp_path / "runs.db"), "--data-dir", str(tmp_path))
    assert code == 0
    assert {name for name, check in found.items() if check["state"] == "fail"} == set()
    assert found["store"]["found"].endswith("does not exist yet and can be created")
    assert "torch 2" in found["libraries"]["found"]


def test_each_thing_that_is_missing_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("SYNO_DATA", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "9999")
    _, found = checks("--store", str(tmp_path / "runs.db"))
    for name, words in (
        ("compiler", "apt install g++"),
        ("graphviz", "apt install graphviz"),
        ("data folder", "--data-dir"),
        ("threads", "OMP_NUM_THREADS to at most"),
    ):
        assert found[name]["state"] == "warn"
        assert words in found[name]["advice"]


def test_a_missing_library_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_LIBRARIES", ("numpy", "no-such-library"))
    code, found = checks("--store", "sqlite:///:memory:")
    assert code == 1
    assert found["libraries"]["advice"] == "pip install no-such-library"


def test_a_file_that_is_no_store_fails(tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    file.write_bytes(b"no database at all, but long enough to be looked at as one" * 4)
    code, found = checks("--store", str(file))
    assert code == 1
    assert found["store"]["state"] == "fail"


def test_the_text_form_has_a_line_for_each_check() -> None:
    result = CliRunner().invoke(cli, ["doctor", "--store", "sqlite:///:memory:"])
    assert "ok    python" in result.stdout
