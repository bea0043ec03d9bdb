"""`syno explain` and `syno why-not`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno import Operator, Specification, UserError, _core
from syno.cli.main import cli
from syno.space.explanation import explain, why_not

from .conftest import CONV, LINEAR, SPECIFICATION

SHAPES = (
    *("--input", "[N, C_in: unordered, H, H]", "--output", "[N, C_out: unordered, H, H]"),
    *("--passed-through", "0:0", "--primary", "N: 0", "--primary", "C_in: 2"),
    *("--primary", "C_out: 4", "--primary", "H: 0", "--coefficient", "k=3: 2"),
    *("--binding", "C_in=8,C_out=8,H=8"),
)
# Depthwise, then pointwise: one C_in too many, and a weight that keeps all its coordinates.
SEPARABLE = """syno operator 1
out [N, C_out: unordered, H, H]
in [N, C_in: unordered, H, H]
reduce C_in -> i
reduce k -> a
reduce k -> b
contract o1:drop i:keep
contract i:keep a:keep b:keep
unfold o2 a -> h
unfold o3 b -> w
match o0 i h w
"""
# A rotation of a sum's index changes nothing.
ROTATED = LINEAR.replace("contract o1:drop r0:keep", "shift r0 1 -> c\ncontract o1:drop c:keep")
ROTATED = ROTATED.replace("match o0 r0", "match o0 c")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    named = {"conv": CONV, "linear": LINEAR, "separable": SEPARABLE, "rotated": ROTATED}
    for name, text in named.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in named}


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(arguments), input=given)


def test_the_path_leads_to_the_operator_step_by_step(files: dict[str, str]) -> None:
    found = json.loads(run("explain", files["conv"], *SHAPES, "--json").stdout)
    assert found["listed"]
    steps = [step["step"] for step in found["steps"]]
    assert len(steps) == 6
    text = "\n".join(["syno graph 1", "out [N, C_out: unordered, H, H]", *steps, ""])
    assert _core.Graph.parse(text).depth == 6
    assert all(step["children"] >= 1 for step in found["steps"])
    budgets = {b["variable"]: (b["used"], b["budget"]) for b in found["usage"]["budgets"]}
    assert budgets == {"C_in": (2, 2), "C_out": (1, 4), "H": (0, 0), "N": (0, 0), "k": (2, 2)}
    used = {u["limit"]: u["used"] for u in found["usage"]["limits"]}
    assert (used["max_depth"], used["max_window"], used["max_weights"]) == (6, 3, 1)
    assert found["usage"]["macs"] == 8 * 8 * 9 * 8 * 8
    assert found["usage"]["params"] == 8 * 8 * 9
    assert {r["kind"] for r in found["rules"]} <= {"exact", "approximate", "restriction"}


def test_the_text_has_every_part(files: dict[str, str]) -> None:
    result = run("explain", files["conv"], *SHAPES)
    assert result.exit_code == 0, result.output
    for part in (
        "Path, from the output",
        "Rules along the path",
        "Budgets",
        "Constraints",
        "Costs",
    ):
        assert f"\n{part}" in result.stdout
    assert "reduce C_in -> r" in result.stdout
    assert "C_in   2 of 2" in result.stdout
    assert "└─ " in result.stdout
    key = Operator.from_text(CONV, SPECIFICATION.with_changes(bindings=["C_in=8,C_out=8,H=8"])).key
    assert f"operator {key}" in result.stdout


def test_an_operator_that_is_not_listed_is_a_negative_result(files: dict[str, str]) -> None:
    result = run("explain", files["separable"], *SHAPES)
    assert result.exit_code == 1
    assert "\nRejected\n" in result.stdout
    assert "`syno why-not`" in result.stdout


def test_operators_come_from_pipes_lines_and_stores(files: dict[str, str], runs: str) -> None:
    by_file = run("explain", files["conv"], *SHAPES).stdout
    assert run("explain", "-", *SHAPES, given=CONV).stdout == by_file
    assert run("explain", CONV, *SHAPES).stdout == by_file
    as_json = json.dumps(Operator.from_text(CONV).to_json())
    assert run("explain", as_json, *SHAPES).stdout == by_file
    stored = run("explain", "1e1e1e", "--store", runs)
    assert stored.exit_code == 0, stored.output
    assert run("explain", files["linear"], "--store", runs).stdout == stored.stdout


def test_a_rule_that_is_off_changes_the_answer(files: dict[str, str]) -> None:
    assert run("explain", files["rotated"], *SHAPES).exit_code == 1
    refused = json.loads(run("explain", files["rotated"], *SHAPES, "--json").stdout)
    rules = {refused["obstacle_reason"].split()[0], refused["refused_match"].split()[0]}
    off = [option for rule in rules for option in ("--rule", f"{rule}=off")]
    assert run("explain", files["rotated"], *SHAPES, *off).exit_code == 0


def test_why_not_names_everything_and_what_admits_it(files: dict[str, str]) -> None:
    result = run("why-not", files["separable"], *SHAPES, "--max-nodes", "0", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["explanation"]["refusals"][0]["reason"] == "budget"
    changes = {r["name"]: (r["from"], r["to"], r["option"]) for r in found["relaxations"]}
    assert changes == {
        "C_in": ("2", "3", "a variable 'C_in: 3'"),
        "element_wise_weights": ("no", "yes", "--element-wise-weights yes"),
    }
    wider = [a.replace("C_in: 2", "C_in: 3") for a in SHAPES]
    assert (
        run("explain", files["separable"], *wider, "--element-wise-weights", "yes").exit_code == 0
    )
    text = run("why-not", files["separable"], *SHAPES, "--max-nodes", "0").stdout
    for part in (
        "\nRejected\n",
        "budget of C_in        3 of 2",
        "element_wise_weights  used, not allowed",
        "from 2 to 3",
        "--element-wise-weights yes",
    ):
        assert part in text


def test_why_not_names_the_operator_that_is_kept(files: dict[str, str]) -> None:
    result = run("why-not", files["rotated"], *SHAPES, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["kept"]["text"] == Operator.from_text(LINEAR).text
    assert found["kept"]["rules"]
    assert all(r["kind"] == "rule" and r["to"] == "off" for r in found["relaxations"])
    text = run("why-not", files["rotated"], *SHAPES).stdout
    assert "Kept instead, the same operator (R" in text
    assert "--rule R" in text


def test_why_not_of_an_operator_that_is_there(files: dict[str, str]) -> None:
    result = run("why-not", files["conv"], *SHAPES, "--max-nodes", "2000")
    assert result.exit_code == 0
    assert "The specification admits the operator" in result.stdout


def test_what_no_change_admits_is_said() -> None:
    bare = CONV.replace("contract o1:drop r0:keep r1:keep r2:keep", "expand o1")
    result = run("why-not", bare, *SHAPES, "--max-nodes", "0")
    assert result.exit_code == 1
    assert "No change of budgets, constraints or rules" in result.stdout
    assert "remaining reason: the operator has no weight" in result.stdout


def test_the_functions_take_values() -> None:
    operator = Operator.from_text(CONV, SPECIFICATION)
    assert explain(operator)["listed"]
    assert explain(operator, SPECIFICATION.with_changes(max_depth=5))["refusals"]
    found = why_not(operator, SPECIFICATION.with_changes(max_depth=5), max_nodes=0)
    change = {"kind": "limit", "name": "max_depth", "from": "5", "to": "6"}
    assert found["relaxations"] == [change]
    rotated = why_not(Operator.from_text(ROTATED), SPECIFICATION)
    assert rotated["kept"]["operator"] == Operator.from_text(LINEAR)
    assert rotated["kept"]["operator"].specification == SPECIFICATION


def test_mistakes_are_told() -> None:
    bare = Operator.from_text(CONV)
    for call, message in (
        (lambda: explain(bare), "cannot be explained without a specification"),
        (lambda: explain(bare, Specification.preset("paper/readme")), "without layers"),
        (lambda: explain(bare, SPECIFICATION, rules_off=["R0"]), "unknown rule 'R0'"),
        (lambda: why_not(bare, SPECIFICATION, max_nodes=-1), "'max_nodes' is a number of at least"),
        (
            lambda: explain(bare, SPECIFICATION.with_changes(coefficient=["q=3: 2"])),
            "the operator uses variable 'k', the specification has",
        ),
        (
            lambda: explain(bare, SPECIFICATION.with_changes(input="[N, C_out: unordered, H, H]")),
            "the specification asks for",
        ),
    ):
        with pytest.raises(UserError, match=message):
            call()
