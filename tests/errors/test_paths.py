"""Paths that no system has, in every command that takes one: a message and exit code 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import runs as runs
from tests.errors.bad_input import run

LONG = "x" * 300
SIZES = ["--binding", "C_in=64,C_out=64,H=8,W=8"]
LINES: list[list[str]] = [
    ["status", "PATH"],
    ["status", "sqlite:///PATH"],
    ["report", "PATH"],
    ["store", "check", "PATH"],
    ["store", "recover", "PATH", "new.db"],
    ["store", "recover", "STORE", "PATH"],
    ["report", "STORE", "-o", "PATH"],
    ["report", "STORE", "-o", "PATH/page.html"],
    ["resume", "PATH"],
    ["select", "--store", "PATH"],
    ["select", "--store", "STORE", "--within", "100", "--out", "PATH"],
    ["show", "PATH"],
    ["show", "1e1e", "--store", "PATH"],
    ["verify", "PATH"],
    ["explain", "PATH", "--preset", "paper/resnet18"],
    ["why-not", "PATH", "--preset", "paper/resnet18"],
    ["export", "PATH", "--out", "a.py"],
    ["export", "y[o] = sum(i:C_in) x[i] * w[o:C_out,i]", "--binding", "C_in=4,C_out=4",
     "--out", "PATH"],
    ["enumerate", "--preset", "paper/resnet18", "--max-nodes", "10", "--file", "PATH"],
    ["enumerate", "--preset", "paper/resnet18", "--rule-file", "PATH"],
    ["sample", "--preset", "paper/resnet18", "--rule-file", "PATH"],
    ["rules", "check", "PATH.py"],
    ["search", "--data", "digits", "--store", "PATH", "--evaluations", "1"],
    ["search", "--data", "PATH", "--dry-run"],
    ["search", "--data", "digits", "--data-dir", "PATH", "--ladder", "PATH.toml", "--dry-run"],
    ["search", "--data", "digits", "--fidelity", "PATH.toml", "--dry-run"],
    ["train", "PATH", "--net", "resnet-small", "--data", "digits"],
    ["data", "list", "--data-dir", "PATH"],
    ["data", "show", "PATH"],
    ["data", "show", "things", "--data-dir", "PATH"],
    ["data", "prepare", "./PATH", "--out", "there"],
    ["models", "show", "resnet-small", "--model-option", "weights=PATH"],
    ["demo", "--out", "PATH/demo", "--operators", "1"],
]  # fmt: skip


@pytest.mark.parametrize("kind", ["long", "below a file"])
@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line)[:60])
def test_a_path_that_cannot_be_is_a_mistake(
    line: list[str],
    kind: str,
    runs: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a file")
    path = {"long": LONG, "below a file": "file/inside/it"}[kind]
    ended = run([part.replace("PATH", path).replace("STORE", runs) for part in line])
    assert ended.code == 2, ended
    assert ended.message.startswith("error: ")
    assert "a fault in Syno" not in ended.message
    left = {entry.name for entry in tmp_path.iterdir() if not entry.name.startswith("runs.db")}
    assert left == {"file"}


def test_a_word_with_a_nul_character_is_a_mistake() -> None:
    ended = run(["status", "a\0b"])
    assert ended.code == 2
    assert "a word of the command line contains a NUL character: 'a\\x00b'" in ended.message
