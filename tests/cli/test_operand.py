"""What OP means on a command line."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from syno import Operator, UserError
from syno.operands.operand import load_operator

from .conftest import CONV, KEYS, LINEAR


def load(op: str, store: str | None = None) -> Operator:
    return load_operator(op, store=store, study=None, specification=None)


def test_a_file_with_the_text(tmp_path: Path) -> None:
    file = tmp_path / "op.txt"
    file.write_text(CONV)
    assert load(str(file)) == Operator.from_text(CONV)


def test_a_file_with_the_json_form(tmp_path: Path) -> None:
    file = tmp_path / "op.json"
    file.write_text(json.dumps(Operator.from_text(CONV).to_json()))
    assert load(str(file)) == Operator.from_text(CONV)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(LINEAR))
    assert load("-") == Operator.from_text(LINEAR)


def test_the_start_of_a_key_in_a_store_with_its_specification(runs: str) -> None:
    found = load(KEYS[LINEAR][:8], runs)
    assert found == Operator.from_text(LINEAR)
    assert found.specification is not None
    assert found.specification.bindings[0]["C_in"] == 8


@pytest.mark.parametrize(
    ("op", "store", "message"),
    [
        ("nothing.txt", False, "there is no operator file 'nothing.txt'"),
        ("c0c0c0", False, "no store to search for an id or a key"),
        ("dddd", True, "no operator with an id or a key that starts with 'dddd'"),
    ],
)
def test_what_cannot_be_found_is_said(op: str, store: bool, message: str, runs: str) -> None:
    with pytest.raises(UserError, match=message):
        load(op, runs if store else None)


def test_a_key_that_begins_several_operators_needs_more_digits(
    runs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from syno.operators import zoo
    from syno.store import Store

    with Store.open(runs) as store:
        study = store.study()
        store.ask(study, 3, (zoo.load("conv1x1").text, "c0c0c0c0" + "1" * 24), "worker")
    with pytest.raises(UserError, match=r"2 operators .* have ids or keys that start with 'c0c0'"):
        load("c0c0", runs)


def test_a_malformed_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "op.txt"
    file.write_text("syno operator 1\nout [N]\nnonsense\n")
    with pytest.raises(UserError, match=f"in {file}"):
        load(str(file))


@pytest.mark.parametrize("content", [b"", b"   \n"])
def test_an_empty_file_is_named(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "op.txt"
    file.write_bytes(content)
    with pytest.raises(UserError, match="is empty"):
        load(str(file))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "op.txt"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot read the operator file"):
        load(str(file))
