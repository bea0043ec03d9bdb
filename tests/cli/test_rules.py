"""`syno rules`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno import Space, Specification, UserError, _core
from syno.cli.main import cli
from syno.space.rules import describe_rule, list_rules, rule_set


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_list_has_every_rule_with_kind_and_status() -> None:
    listed = json.loads(run("rules", "list", "--json").stdout)
    assert [r["id"] for r in listed] == [r["id"] for r in _core.rule_catalogue()]
    assert {r["kind"] for r in listed} <= {"exact", "approximate", "restriction"}
    assert all(r["status"] for r in listed)
    text = run("rules", "list").stdout
    for rule in listed:
        assert f"\n{rule['id']} " in text
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


RULES = """
import syno


@syno.rule("U1", "no-shift", kind="restriction", steps=["shift"])
def no_shift(graph, step):
    \"\"\"no Shift at all\"\"\"
    return True
"""
SMALL = ("--input", "[C_in, H]", "--output", "[C_out, H]", "--primary", "C_in: 2")
SMALL += ("--primary", "C_out: 2", "--primary", "H: 1", "--coefficient", "s=2: 1")
SMALL += ("--binding", "C_in=16,C_out=16,H=32")


@pytest.fixture
def rule_file(tmp_path: Path) -> str:
    file = tmp_path / "my_rules.py"
    file.write_text(RULES)
    return str(file)


def test_a_file_of_rules_is_asked_wherever_operators_are_listed(
    rule_file: str, tmp_path: Path
) -> None:
    enumerate_ = ("enumerate", *SMALL, "--depth", "4", "--json")
    plain = json.loads(run(*enumerate_).stdout)
    ruled = json.loads(run(*enumerate_, "--rule-file", rule_file, "--stats").stdout)
    assert 0 < ruled["operators"] < plain["operators"]
    assert ruled["rules_added"] == ["U1 no-shift"]
    assert "U1 no-shift" in json.dumps(ruled["rejections"])
    off = json.loads(run(*enumerate_, "--rule-file", rule_file, "--rule", "U1=off").stdout)
    assert off["signature"] == plain["signature"]
    drawn = run("sample", *SMALL, "--rule-file", rule_file, "--count", "5", "--json")
    assert all("shift" not in o["primitives"] for o in json.loads(drawn.stdout)["operators"])
    operator = tmp_path / "op.txt"
    texts = (o["text"] for o in json.loads(run("sample", *SMALL, "--json").stdout)["operators"])
    operator.write_text(next(text for text in texts if "shift" in text))
    for command in ("explain", "why-not"):
        found = run(command, str(operator), *SMALL, "--rule-file", rule_file)
        assert found.exit_code == 1, found.output
        assert "U1 no-shift" in found.stdout


def test_a_kept_enumeration_belongs_to_its_rules(rule_file: str, tmp_path: Path) -> None:
    space = str(tmp_path / "x.space")
    listed = ("enumerate", *SMALL, "--depth", "3", "--file", space)
    assert run(*listed, "--rule-file", rule_file).exit_code == 0
    refused = run(*listed, "--resume")
    assert refused.exit_code == 2
    assert "made with other rules" in refused.output
    assert "rule U1 no-shift" in refused.output
    assert run(*listed, "--resume", "--rule-file", rule_file).exit_code == 0


def test_a_rule_that_fails_is_named_with_its_line(rule_file: str) -> None:
    Path(rule_file).write_text(RULES.replace("return True", "return 1 / 0"))
    failed = run("enumerate", *SMALL, "--depth", "3", "--rule-file", rule_file)
    assert failed.exit_code == 2
    assert "rule 'U1 no-shift' failed\n  found: ZeroDivisionError: division by zero (line 8)" in (
        failed.output
    )


def test_mistakes_about_files_of_rules(rule_file: str, tmp_path: Path) -> None:
    listed = ("enumerate", *SMALL, "--depth", "2", "--rule-file")
    assert "no such file" in run(*listed, str(tmp_path / "none.py")).output
    twice = run(*listed, rule_file, "--rule-file", rule_file)
    assert twice.exit_code == 2
    assert "there is a rule 'U1' already" in twice.output
    unknown = run(*listed, rule_file, "--rule", "U2=off")
    assert unknown.exit_code == 2
    assert "unknown rule 'U2'" in unknown.output


def test_effect_counts_what_each_rule_saves() -> None:
    effect = ("rules", "effect", *SMALL, "--depth", "5")
    result = run(*effect, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["depth"] == 5
    everything, exact, *rows = found["effects"]
    assert (everything["rule"], exact["rule"]) == (None, None)
    assert (everything["without"], exact["without"]) == ("", "approximate")
    assert [row["rule"] for row in rows] == [rule["id"] for rule in _core.rule_catalogue()]
    listed = ("enumerate", *SMALL, "--depth", "5", "--json")
    for row, options in (
        (everything, []),
        (exact, ["--rule", "approximate=off"]),
        (rows[0], ["--rule", f"{rows[0]['rule']}=off"]),
    ):
        space = json.loads(run(*listed, *options).stdout)
        for name in ("graphs", "structures", "operators"):
            assert row[name] == space[name], (row, name)
    for row in rows:
        if row["kind"] == "exact":
            assert (row["more"], row["fewer"]) == (0, 0), row
            assert row["graphs"] >= exact["graphs"]
            assert row["structures"] >= exact["structures"]
        assert row["exhausted"]
    by_id = {row["rule"]: row for row in rows}
    assert by_id["R6a"]["graphs"] > exact["graphs"]
    assert by_id["R18"]["more"] > 0


def test_effect_prints_tables_and_says_what_a_budget_left() -> None:
    effect = ("rules", "effect", *SMALL, "--depth", "4", "--only", "R6a", "--only", "dropped-kinds")
    table = run(*effect).stdout
    assert "R6a view-above-share off" in table
    assert "R8 dropped-kinds off" in table
    assert "R7" not in table
    lines = run(*effect, "--markdown").stdout.strip().split("\n")
    assert lines[0] == "| | kind | graphs | structures | operators | more | fewer | repeats |"
    assert len(lines) == 6
    assert lines[2].startswith("| all rules | | ")
    assert lines[4].startswith("| R6a view-above-share off | exact | ")
    assert "(incomplete)" in run(*effect, "--max-nodes", "20").stdout
    assert "unknown rule 'R0'" in run("rules", "effect", *SMALL, "--only", "R0").output


WRONG = """
import syno


@syno.rule("U1", "parts-exchanged", kind="exact", steps=["split"])
def parts_exchanged(graph, step):
    \"\"\"the parts of a Split in one order (which is wrong)\"\"\"
    major, minor = step.inputs
    return graph.then("split", minor, major) if major > minor else None


@syno.rule("U2", "shift-of-reduce", kind="exact", steps=["shift"])
def shift_of_reduce(graph, step):
    return graph if graph.maker(step.inputs[0]) == "reduce" else None


@syno.rule("U3", "shift-is-nothing", kind="approximate", steps=["shift"])
def shift_is_nothing(graph, step):
    return graph


@syno.rule("U4", "no-stride", kind="restriction", steps=["stride"])
def no_stride(graph, step):
    return True
"""


def test_check_finds_out_what_is_wrong_with_a_rule(tmp_path: Path) -> None:
    file = tmp_path / "my_rules.py"
    file.write_text(WRONG)
    result = run("rules", "check", str(file), "--trials", "40", "--json")
    assert result.exit_code == 1
    wrong, good, near, left_out = json.loads(result.stdout)
    assert not wrong["sound"]
    assert wrong["different"] > 20
    assert "split" in wrong["refused_graph"]
    assert "split" in wrong["kept_graph"]
    assert (good["sound"], good["compared"], good["different"]) == (True, 40, 0)
    assert near["sound"]
    assert 0.1 < near["mean_share"] <= near["most_share"] <= 1
    assert (left_out["compared"], left_out["kept_graph"]) == (40, "")
    text = run("rules", "check", str(file), "--trials", "40").stdout
    assert "U1 parts-exchanged, exact: is not exact: " in text
    assert "U2 shift-of-reduce, exact: no difference in 40 operators" in text
    assert "U3 shift-is-nothing, approximate: keeps operators that differ in " in text
    assert "U4 no-stride, restriction: excludes the operators that it rejects" in text


def test_check_takes_rules_of_the_catalogue() -> None:
    checked = run("rules", "check", "view-above-share", "--trials", "20", "--json")
    assert checked.exit_code == 0
    assert json.loads(checked.stdout)[0]["rule"] == "R6a view-above-share"
    assert run("rules", "check", "R0").exit_code == 2
    assert "no such file" in run("rules", "check", "none.py").output
    nothing = run("rules", "check", "R23", "--trials", "1", "--max-graphs", "3")
    assert nothing.exit_code == 1
    assert "rejected nothing" in nothing.stdout


def test_why_not_prints_the_near_equal_operator(tmp_path: Path) -> None:
    specification = Specification(
        "[C_in, H]",
        "[C_out, H]",
        ["C_in: 2", "C_out: 2", "H: 1"],
        ["s=2: 1"],
        bindings=["C_in=16, C_out=16, H=32"],
    )
    kept = Space.enumerate(specification, depth=5).keys()
    exact = Space.enumerate(specification, depth=5, rules_off=["approximate"])
    lost = next(operator for operator in exact if operator.key not in kept)
    file = tmp_path / "op.txt"
    file.write_text(lost.text)
    found = run("why-not", str(file), *SMALL)
    assert found.exit_code == 1
    assert "Kept instead, a nearly equal operator (R1" in found.stdout
    assert re.search(r"--rule R1\w+=off", found.stdout)
    value = json.loads(run("why-not", str(file), *SMALL, "--json").stdout)
    assert value["kept"]["near"] is True
    assert value["kept"]["key"] in kept
    assert run("why-not", str(file), *SMALL, "--rule", "approximate=off").exit_code == 0
