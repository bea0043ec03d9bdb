"""`syno sample`."""

from __future__ import annotations

import json

from click.testing import CliRunner, Result

from syno import Operator, Specification
from syno.cli.main import cli

PRESET = ("sample", "--preset", "paper/resnet18", "--max-nodes", "3000")
SMALL = (
    *("sample", "--input", "[C_in, H]", "--output", "[C_out, H]", "--primary", "C_in: 2"),
    *("--primary", "C_out: 2", "--primary", "H: 1", "--coefficient", "k=3: 1"),
    *("--binding", "C_in=16,C_out=16,H=32", "--max-nodes", "3000"),
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_operators_are_distinct_and_the_same_for_the_same_seed() -> None:
    first, second = (run(*SMALL, "--count", "5", "--json") for _ in range(2))
    assert first.exit_code == 0, first.output
    assert first.stdout == second.stdout
    operators = json.loads(first.stdout)["operators"]
    assert len({entry["key"] for entry in operators}) == 5
    assert all(entry["macs"] > 0 and entry["params"] > 0 for entry in operators)


def test_a_batch_dimension_is_passed_through() -> None:
    listed = run(
        *("sample", "--input", "[N, C_in: unordered, H, H]", "--primary", "N: 0"),
        *("--output", "[N, C_out: unordered, H, H]", "--passed-through", "0:0"),
        *("--primary", "C_in: 2", "--primary", "C_out: 4", "--primary", "H: 0"),
        *("--binding", "C_in=16,C_out=16,H=32", "--max-nodes", "2000", "--count", "5", "--json"),
    )
    assert listed.exit_code == 0, listed.output
    operators = json.loads(listed.stdout)["operators"]
    assert all(entry["formula"].startswith("y[n,o,") for entry in operators)
    assert all(entry["operator"]["match"][0] == "o0" for entry in operators)


def test_another_seed_draws_others() -> None:
    first, second = (run(*SMALL, "--count", "5", "--seed", seed, "--json") for seed in "01")
    assert first.stdout != second.stdout


def test_the_text_form_has_formula_macs_and_params() -> None:
    result = run(*PRESET, "--count", "2", "--rejections")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert " MACs " in lines[0]
    assert " params " in lines[0]
    assert lines[1].startswith("      y[n,o,h,w] = ")
    assert "completion_bound" in result.stdout


def test_one_text_can_be_read_again() -> None:
    text = run(*PRESET, "--text").stdout
    operator = Operator.from_text(text, specification=Specification.preset("paper/resnet18"))
    assert operator.text == text


def test_fewer_than_asked_for_is_a_negative_result() -> None:
    result = run(*PRESET, "--count", "100000")
    assert result.exit_code == 1
    assert "only " in result.stderr


def test_a_limit_on_the_command_line_counts() -> None:
    listed = json.loads(run(*SMALL, "--max-shifts", "0", "--count", "20", "--json").stdout)
    assert all("shift" not in entry["primitives"] for entry in listed["operators"])


def test_mistakes_are_told() -> None:
    for arguments, message in (
        (("sample",), "no specification is given"),
        (("sample", "--preset", "paper/none"), "paper/none"),
        (
            ("sample", "--input", "[H]", "--output", "[H]", "--primary", "H: 1"),
            "no layer to find operators for",
        ),
        (
            (
                "sample",
                "--input",
                "[H]",
                "--output",
                "[Q]",
                "--primary",
                "H: 2",
                "--binding",
                "H=8",
            ),
            "Q",
        ),
        (
            (
                *("sample", "--input", "[H]", "--output", "[W]", "--primary", "H: 0"),
                *("--primary", "W: 0", "--binding", "H=8,W=6"),
            ),
            "no operator connects the shapes",
        ),
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert result.stderr.startswith("error: ")
        assert message in result.stderr
