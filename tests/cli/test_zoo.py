"""`syno zoo`, and index notation as an operand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno import Operator
from syno.cli.main import cli
from syno.operators import zoo

CONV = "y[n:N,o:C_out,h:H,w:W] = sum(i:C_in, a:k, b:k) x[n,i,h+a-k/2,w+b-k/2] * w0[o,i,a,b]"


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(arguments), input=given)


def test_list_has_every_operator_and_every_module() -> None:
    listed = json.loads(run("zoo", "list", "--json").stdout)
    assert [entry["name"] for entry in listed["operators"]] == zoo.names()
    published = {entry["name"] for entry in listed["published"]}
    assert published | set(zoo.names()) == set(zoo.all_names())
    assert [entry["name"] for entry in listed["modules"]] == zoo.module_names()
    text = run("zoo", "list").stdout
    for name in (*zoo.names(), *zoo.module_names()):
        assert f"\n{name} " in text


def test_show_prints_definition_stages_text_and_cost() -> None:
    text = run("zoo", "show", "operator-2").stdout
    assert "Z[n,a,h,w,j] = sum(" in text
    assert "  syno operator 1\n" in text
    assert "7,200" in text
    entry = json.loads(run("zoo", "show", "operator-2", "--json").stdout)
    assert Operator.from_text(entry["text"]) == zoo.load("operator-2")


def test_text_goes_to_other_commands() -> None:
    text = run("zoo", "show", "operator-1", "--text").stdout
    shown = run("show", "-", "--json", given=text)
    assert json.loads(shown.stdout)["structure"] == zoo.load("operator-1").structure


def test_verify_says_what_it_compared() -> None:
    result = run("zoo", "verify", "linear", "pixel-shuffle", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["passed"]
    assert [(r["name"], r["outputs"]) for r in found["results"]] == [
        ("linear", 60),
        ("pixel-shuffle", 840),
    ]


def test_wrong_code_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    source = zoo.load("conv1x1").source(zoo.binding("conv1x1"))
    assert "return " in source
    monkeypatch.setattr(Operator, "source", lambda *_: source.replace("return ", "return 2 * "))
    result = run("zoo", "verify", "conv1x1")
    assert result.exit_code == 1, result.stdout
    assert "FAILED" in result.stdout


@pytest.mark.parametrize("command", [["show"], ["verify"]])
def test_an_unknown_name_is_a_mistake(command: list[str]) -> None:
    result = run("zoo", *command, "conv3d")
    assert result.exit_code == 2
    assert "unknown operator 'conv3d'" in result.output
    assert "operator-07821" in result.output


def test_a_formula_is_an_operand(tmp_path: Path) -> None:
    shown = json.loads(run("show", CONV, "--json").stdout)
    assert shown["text"] == Operator.parse(CONV).text
    path = tmp_path / "conv.txt"
    path.write_text(f"# by hand\n{CONV}\n")
    assert json.loads(run("show", str(path), "--json").stdout) == shown
    assert json.loads(run("show", "-", "--json", given=CONV).stdout) == shown
    verified = run("verify", CONV, "--binding", "N=2,C_in=4,C_out=6,H=5,W=7,k=3")
    assert verified.exit_code == 0, verified.output


def test_a_formula_takes_the_shapes_of_a_specification() -> None:
    formula = "y[n,o,h,w] = sum(i, a, b) x[n,i,h+a-k_1/2,w+b-k_1/2] * W[o,i,a,b]"
    shown = json.loads(run("show", formula, "--preset", "paper/resnet18", "--json").stdout)
    assert len(shown["layers"]) == 7
    assert all("macs" in layer for layer in shown["layers"])
