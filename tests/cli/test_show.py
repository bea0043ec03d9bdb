"""`syno show`, `syno verify` and `syno export` on one operator."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno import Operator
from syno.cli.main import cli

from .conftest import CONV, LINEAR

SIZES = "C_in=4,C_out=8,H=6,k=3"


@pytest.fixture
def conv(tmp_path: Path) -> str:
    file = tmp_path / "conv.txt"
    file.write_text(CONV)
    return str(file)


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(arguments), input=stdin)


def test_show_prints_formula_drawing_text_and_cost(conv: str) -> None:
    result = run("show", conv, "--binding", SIZES)
    assert result.exit_code == 0, result.output
    operator = Operator.from_text(CONV)
    assert f"  {operator.formula()}\n" in result.stdout
    assert "  └─ x[3] size H = c1  unfold\n" in result.stdout
    assert f"  {operator.text.splitlines()[-1]}\n" in result.stdout
    weight = "x".join(map(str, operator.weight_shapes(SIZES)[0]))
    row = next(line for line in result.stdout.splitlines() if "C_in=4" in line)
    assert " ".join(row.split()) == f"k=3 C_in=4 C_out=8 H=6 N=1 1 10.4 k 288 {weight}"


def test_show_prints_the_cheapest_plans(conv: str) -> None:
    result = run("show", conv, "--binding", SIZES, "--plans", "2")
    assert result.exit_code == 0, result.output
    plans = Operator.from_text(CONV).plans(SIZES, 2)
    assert len(plans) == 2
    for number, plan in enumerate(plans, 1):
        assert f"Plan {number} of k=3, C_in=4" in result.stdout
        for line in plan.text.splitlines():
            assert f"  {line}\n" in result.stdout
    shown = json.loads(run("show", conv, "--binding", SIZES, "--plans", "2", "--json").stdout)
    (layer,) = shown["layers"]
    assert [plan["stages"] for plan in layer["plans"]] == [plan.text for plan in plans]
    assert [plan["bytes_moved"] for plan in layer["plans"]] == [p.bytes_moved for p in plans]


@pytest.mark.parametrize("emitter", ["cpp", "pytorch"])
def test_show_times_the_plans(
    emitter: str,
    conv: str,
    new_cache: Callable[[Path], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SYNO_CACHE", str(new_cache(tmp_path / "cache")))
    words = ("show", conv, "--binding", SIZES, "--plans", "2", "--measure", "--emitter", emitter)
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert "over plan 1" in result.stdout
    assert "1.00x" in result.stdout
    (layer,) = json.loads(run(*words, "--json").stdout)["layers"]
    measured = layer["measured"]
    assert measured["from_cache"]
    assert (measured["emitter"], measured["threads"]) == (emitter, 1)
    assert f"Plan {measured['number']} is selected: {emitter}, 1 thread" in result.stdout
    for plan in layer["plans"]:
        assert plan["measured"]["macs"] == plan["macs"]
        assert plan["measured"]["best_ms"] > 0
    (layer,) = json.loads(run(*words, "--again", "--json").stdout)["layers"]
    assert not layer["measured"]["from_cache"]


def test_plans_are_of_one_layer(conv: str) -> None:
    result = run("show", conv, "--plans", "2")
    assert result.exit_code == 2
    assert "plans require the sizes of a layer: use --binding, such as --binding" in result.output
    result = run("show", conv, "--binding", SIZES, "--fold-weights")
    assert result.exit_code == 2
    assert "--fold-weights requires --plans" in result.output
    result = run("show", conv, "--binding", SIZES, "--measure")
    assert (result.exit_code, "--measure requires --plans" in result.output) == (2, True)
    result = run("show", conv, "--binding", SIZES, "--plans", "2", "--threads", "2")
    assert (result.exit_code, "require --measure" in result.output) == (2, True)
    result = run("show", conv, "--binding", SIZES, "--plans", "2", "--measure", "--emitter", "tvm")
    assert (result.exit_code, "expected: cpp or pytorch" in result.output) == (2, True)


def test_show_reads_from_a_pipe() -> None:
    result = run("show", "-", "--json", stdin=LINEAR)
    assert result.exit_code == 0, result.output
    shown = json.loads(result.stdout)
    assert shown["formula"] == "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * w0[o,i]"
    assert Operator.from_json(shown["operator"]) == Operator.from_text(shown["text"])


def test_show_lists_the_layers_of_the_search_that_found_it(runs: str) -> None:
    layers = json.loads(run("show", "1e1e1e", "--store", runs, "--json").stdout)["layers"]
    assert [(e["multiplicity"], e["macs"], e["params"]) for e in layers] == [
        (2, 4096, 64),
        (1, 2048, 128),
    ]


def test_show_dot_is_for_graphviz(conv: str) -> None:
    assert run("show", conv, "--dot").stdout.startswith("digraph")


def test_verify_passes_right_code(conv: str) -> None:
    result = run("verify", conv, "--binding", SIZES, "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["passed"] is True
    assert answer["results"][0]["max_error"] < 1e-5


def test_verify_fails_wrong_code(conv: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Operator.source

    def doubled(operator: Operator, binding: dict[str, int]) -> str:
        return right(operator, binding).replace("return ", "return 2 * ")

    monkeypatch.setattr(Operator, "source", doubled)
    result = run("verify", conv, "--binding", SIZES)
    assert result.exit_code == 1, result.output
    assert "FAILED" in result.stdout


def test_verify_without_sizes_says_what_is_missing(conv: str) -> None:
    result = run("verify", conv)
    assert result.exit_code == 2
    assert "needs values of k, C_in, C_out, H\n" in result.stderr
    assert f"such as: syno verify {conv} --binding k=3,C_in=64" in result.stderr


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_the_line_that_a_message_proposes_works(command: str, conv: str, tmp_path: Path) -> None:
    out = ["-o", str(tmp_path / "op.py")] if command == "export" else []
    first = run(command, conv, "--binding", "C_out=12", *out)
    assert first.exit_code == 2, first.output
    (line,) = (line for line in first.stderr.splitlines() if "such as: syno " in line)
    again = run(*shlex.split(line.partition("such as: syno ")[2]))
    assert again.exit_code == 0, again.output


def test_a_specification_that_does_not_know_the_variables_is_refused(conv: str) -> None:
    result = run("show", conv, "--preset", "paper/resnet18")
    assert result.exit_code == 2
    assert "has variables that the specification does not know: k\n" in result.stderr


def test_a_specification_gives_coefficients_their_values(conv: str, runs: str) -> None:
    for command in ("show", "verify"):
        result = run(command, conv, "--store", runs, "--binding", "C_in=4,C_out=8,H=6", "--json")
        assert result.exit_code == 0, result.output
        answer = json.loads(result.stdout)
        (layer,) = answer["layers" if command == "show" else "results"]
        assert (layer["binding"]["k"], layer["binding"]["N"]) == (3, 1)


def test_export_writes_files_that_run_without_syno(conv: str, tmp_path: Path) -> None:
    out = tmp_path / "op.py"
    result = run("export", conv, "--binding", SIZES, "-o", str(out), "--check", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["written"] == [str(out), str(out.with_suffix(".safetensors"))]
    assert answer["ran_without_syno"] is True


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "needs values of k, C_in, C_out, H\n"),
        (["--binding", "C_in=4"], "needs values of k, C_out, H\n"),
        (["--binding", SIZES, "--format", "onyx"], "unknown format 'onyx'"),
    ],
)
def test_export_says_what_is_missing(
    more: list[str], message: str, conv: str, tmp_path: Path
) -> None:
    result = run("export", conv, "-o", str(tmp_path / "op.py"), *more)
    assert result.exit_code == 2
    assert message in result.stderr
