"""Options of the command line come from their declarations; specifications are named by them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner, Result

import syno
from syno import _core
from syno._util.options import declared
from syno.cli.main import cli


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def described(*arguments: str) -> dict[str, Any]:
    """The specification that options name, as `syno enumerate` prints it."""
    result = run("enumerate", *arguments, "--depth", "1", "--json")
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)["specification"]["fields"]


def test_each_limit_is_an_option_of_the_same_name() -> None:
    text = run("sample", "--help").output
    for descriptor in _core.option_descriptors():
        assert f"--{descriptor['name'].replace('_', '-')}" in text
    assert "Constraints on operators:" in text


@pytest.mark.parametrize(
    "kind", [syno.TrainOptions, syno.TimingOptions, syno.IsolationOptions, syno.SpaceOptions]
)
def test_each_option_of_a_search_is_an_option_of_the_command_line(kind: Any) -> None:
    words = re.sub(r"\s+", " ", run("search", "--help").output)
    assert f"{kind.section}: --" in words
    for option in declared(kind):
        if not option.shown:
            continue
        assert f" {option.flag}" in words
        assert option.doc in words
        if isinstance(option.default, int) and not isinstance(option.default, bool):
            assert f"{option.doc} [default: {option.default}" in words


def test_only_what_was_given_arrives_and_with_its_type() -> None:
    preset = ("--preset", "paper/resnet18")
    plain = described(*preset)["limits"]
    given = described(
        *preset, "--max-reductions", "3", "--element-wise-weights", "yes", "--min-fit", "0.5"
    )["limits"]
    changed = {name for name in plain if plain[name] != given[name]}
    expected = {"max_reductions": 3, "element_wise_weights": True, "min_fit": 0.5}
    assert changed <= set(expected)
    assert {name: given[name] for name in expected} == expected


def test_values_below_the_least_are_refused() -> None:
    result = run("sample", "--max-depth", "-1")
    assert result.exit_code == 2
    assert "--max-depth" in result.output


def test_a_preset_takes_limits_and_bindings() -> None:
    assert described("--preset", "paper/resnet18", "--max-depth", "7")["limits"]["max_depth"] == 7
    bound = described("--preset", "paper/readme", "--binding", "H=8,W=8")
    assert bound["bindings"] == [{"H": 8, "W": 8}]


def test_shapes_and_variables_make_a_specification() -> None:
    shapes = ("--input", "[H, W]", "--output", "[H, W]")
    variables = ("--primary", "H: 2", "--primary", "W: 2", "--coefficient", "s=2: 2")
    found = described(*shapes, *variables, "--binding", "H=8, W=8")
    assert (found["input"], found["output"]) == ("[H, W]", "[H, W]")
    assert found["bindings"] == [{"H": 8, "W": 8}]


def test_dimensions_are_passed_through() -> None:
    shapes = ("--input", "[N, H]", "--output", "[H, N]", "--passed-through", "1:0")
    found = described(*shapes, "--primary", "N: 0", "--primary", "H: 2", "--binding", "H=8")
    assert found["passed_through"] == [[1, 0]]


@pytest.mark.parametrize(("given", "expected"), [("g=4", "g=4: 3"), ("g = 8: 1", "g=8: 1")])
def test_a_coefficient_of_a_preset_has_another_value(given: str, expected: str) -> None:
    before = described("--preset", "paper/resnet18")["coefficient"]
    found = described("--preset", "paper/resnet18", "--coefficient", given)["coefficient"]
    assert found == [expected if text.startswith("g=") else text for text in before]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "no specification is given"),
        (("--preset", "paper/readme", "--primary", "H: 1"), "both --preset and shapes"),
        (("--preset", "paper/none"), "paper/none"),
        (("--preset", "paper/readme", "--coefficient", "z=3"), "no coefficient to change by 'z=3'"),
        (("--preset", "paper/readme", "--passed-through", "0:0"), "both --preset and shapes"),
        (("--passed-through", "0:0"), "without a specification"),
        (("--passed-through", "0"), "is not a pair of dimensions"),
        (("--input", "[H]"), "--output is missing"),
        (("--output", "[H]"), "--input is missing"),
        (("--binding", "H=8"), "without a specification"),
        (("--preset", "paper/readme", "--binding", "H=0"), "H"),
    ],
)
def test_half_a_specification_is_a_mistake(given: tuple[str, ...], message: str) -> None:
    result = run("enumerate", *given)
    assert result.exit_code == 2
    assert message in re.sub(r"\s+", " ", result.stderr)
