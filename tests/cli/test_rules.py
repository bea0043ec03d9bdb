"""`syno rules`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from syno import UserError, _core
from syno.cli.main import cli
from syno.rules import describe_rule, list_rules, rule_set


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_list_has_every_rule_with_kind_and_status() -> None:
    listed = json.loads(run("rules", "list", "--json").stdout)
    assert [r["id"] for r in listed] == [r["id"] for r in _core.rule_catalogue()]
    assert {r["kind"] for r in listed} <= {"exact", "approximate", "restriction"}
    assert all(r["status"] for r in listed)
    text = run("rules", "list").stdout
    for rule in listed:
        assert f" {rule['id']} " in text
        assert rule["name"] in text


def test_list_can_be_narrowed_to_a_kind() -> None:
    kinds = {
        r["kind"] for r in json.loads(run("rules", "list", "--kind", "exact", "--json").stdout)
    }
    assert kinds == {"exact"}


@pytest.mark.parametrize("name", ["R6a", "view-above-share"])
def test_show_prints_the_doc(name: str) -> None:
    text = run("rules", "show", name).stdout
    assert text.startswith("R6a view-above-share, exact")
    for heading in ("What:", "Why:", "When:", "Soundness:", "Status:", "Example:"):
        assert f"\n{heading}" in text
    assert json.loads(run("rules", "show", name, "--json").stdout)["doc"]["What"] in text


def test_alone_it_prints_its_help() -> None:
    result = run("rules")
    assert result.exit_code == 0
    assert "Commands:" in result.stdout
    assert "Examples:" in result.stdout


def test_an_unknown_rule_is_a_mistake_that_lists_the_rules() -> None:
    for call in (
        lambda: describe_rule("R0"),
        lambda: rule_set(["R0"]),
    ):
        with pytest.raises(UserError, match=r"unknown rule 'R0'(.|\n)*R6a view-above-share"):
            call()
    assert run("rules", "show", "R0").exit_code == 2


def test_a_set_of_rules_knows_which_are_on() -> None:
    rules = rule_set(["R6a", "split-above-share"])
    off = {r.id for r in list_rules() if not rules.is_on(r.id)}
    assert off == {"R6a", "R7"}
    with pytest.raises(UserError, match="'rules_off' is one string"):
        rule_set("R6a")
    with pytest.raises(UserError, match="named by its id or name, got 3"):
        rule_set([3])  # type: ignore[list-item]
