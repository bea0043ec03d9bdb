"""`syno status`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from syno.cli.main import cli
from syno.store import Outcome, Store

from .conftest import HERE


def test_it_counts_what_the_store_holds(runs: str) -> None:
    result = CliRunner().invoke(cli, ["status", runs])
    assert result.exit_code == 0, result.output
    *_, row, rate = (" ".join(line.split()) for line in result.stdout.splitlines())
    assert row == (
        "digits-1 1 of 3 0 1 90.0 % 85.0 % 8ae7e767 running, or killed: `syno resume` continues it"
    )
    assert re.fullmatch(r"\d+ trials an hour; the last progress was 1 operator ago\.", rate)


def test_a_limit_that_a_later_run_gave_counts(runs: str) -> None:
    with Store.open(runs) as store:
        store.append_event(store.study(), "resumed", {"evaluations": 9})
        store.append_event(store.study(), "resumed", {"seconds": 60.0})
    result = CliRunner().invoke(cli, ["status", runs])
    assert " 1 of 9 " in " ".join(result.stdout.split())
    (study,) = json.loads(CliRunner().invoke(cli, ["status", runs, "--json"]).stdout)["studies"]
    assert study["asked_for"] == 9


def test_a_dry_resume_counts_as_the_budget_does(runs: str) -> None:
    before = _plan(runs)
    assert (before["done"], before["left"]) == (2, 1)
    with Store.open(runs) as store:
        study = store.study()
        for ask, rung in ((3, ""), (4, "tiny")):  # refused before training, and diverged in it
            proposal = store.ask(study, ask, (f"text {ask}", f"{ask:032x}"), "worker")
            store.tell(proposal.id, Outcome("rejected", reason="diverged", rung=rung), HERE)
        assert store.summary().evaluations[-1].is_evaluated
        store.append_event(study, "resumed", {"evaluations": 9})
    after = _plan(runs)
    assert (after["done"], after["left"]) == (3, 6)
    assert _plan(runs, "--evaluations", "4")["left"] == 1


def _plan(runs: str, *more: str) -> dict[str, Any]:
    result = CliRunner().invoke(cli, ["resume", runs, "--dry-run", "--json", *more])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_it_lists_operators_with_their_figures(runs: str) -> None:
    result = CliRunner().invoke(cli, ["status", runs, "--operators"])
    rows = [" ".join(line.split()) for line in result.stdout.splitlines()]
    # 1.25 is what the two latencies say, which were measured in one run.
    assert "8ae7e767 85.0 % 1.20 ms 1.50 ms 1.25× 120 k 900 contract, reduce ok" in rows
    assert "c343c269 – – – – 1 – error: non_finite_loss" in rows


def test_json_is_the_same_for_programs(runs: str) -> None:
    result = CliRunner().invoke(cli, ["status", runs, "--operators", "--json"])
    (study,) = json.loads(result.stdout)["studies"]
    assert (study["name"], study["trained"], study["failed"], study["open"]) == (
        "digits-1",
        1,
        1,
        0,
    )
    assert study["best"]["accuracy"] == 0.85
    assert [entry["status"] for entry in study["operators"]] == ["ok", "error"]


def test_a_store_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["status", str(tmp_path / "none.db")])
    assert result.exit_code == 2
    assert "error: there is no store" in result.stderr
    assert not (tmp_path / "none.db").exists()


def test_an_unknown_study_is_named_with_what_there_is(runs: str) -> None:
    result = CliRunner().invoke(cli, ["status", runs, "--study", "other"])
    assert result.exit_code == 2
    assert "there is no study 'other'" in result.stderr
    assert "digits-1" in result.stderr
