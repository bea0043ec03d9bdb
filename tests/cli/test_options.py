"""Options from the descriptors, and specifications named on the command line."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from syno import UserError, _core
from syno.cli import framework, options
from syno.cli.options import named_specification


@framework.command(name="probe", examples=[])
@options.limit_options
def probe(limits: dict[str, Any]) -> None:
    """Print the limits that were given."""
    click.echo(repr(limits))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(probe, list(arguments))


def test_each_limit_is_an_option_of_the_same_name() -> None:
    text = run("--help").output
    for descriptor in _core.option_descriptors():
        assert f"--{descriptor['name'].replace('_', '-')}" in text
    assert "Limits of an operator:" in text


def test_only_what_was_given_arrives_and_with_its_type() -> None:
    assert run().output == "{}\n"
    given = run("--max-reductions", "3", "--element-wise-weights", "yes", "--min-fit", "0.5")
    expected = {"max_reductions": 3, "element_wise_weights": True, "min_fit": 0.5}
    assert eval(given.output) == expected


def test_values_below_the_least_are_refused() -> None:
    result = run("--max-depth", "-1")
    assert result.exit_code == 2
    assert "--max-depth" in result.output


def named(**given: Any) -> Any:
    empty: dict[str, Any] = {"preset": None, "input_shape": None, "output_shape": None}
    empty |= {"primary": (), "coefficient": (), "bindings": (), "limits": {}}
    return named_specification(**(empty | given))


def test_a_preset_takes_limits_and_bindings() -> None:
    found = named(preset="paper/resnet18", limits={"max_depth": 7})
    assert found.limits["max_depth"] == 7
    bound = named(preset="paper/readme", bindings=("H=8,W=8",))
    assert bound.bindings == [{"H": 8, "W": 8}]


def test_shapes_and_variables_make_a_specification() -> None:
    found = named(
        input_shape="[H, W]",
        output_shape="[H, W]",
        primary=("H: 2", "W: 2"),
        coefficient=("s=2: 2",),
        bindings=("H=8, W=8",),
    )
    assert (found.input, found.output) == ("[H, W]", "[H, W]")
    assert found.variables == ["s", "H", "W"]


def test_dimensions_are_passed_through() -> None:
    found = named(
        input_shape="[N, H]",
        output_shape="[H, N]",
        primary=("N: 0", "H: 2"),
        passed_through=((1, 0),),
        bindings=("H=8",),
    )
    assert found.passed_through == [(1, 0)]
    assert found.full_bindings == [{"H": 8, "N": 1}]


def test_nothing_given_is_no_specification() -> None:
    assert named() is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"preset": "paper/readme", "primary": ("H: 1",)}, "both --preset and shapes"),
        ({"preset": "paper/none"}, "paper/none"),
        ({"preset": "paper/readme", "passed_through": ((0, 0),)}, "both --preset and shapes"),
        ({"passed_through": ((0, 0),)}, "without a specification"),
        ({"input_shape": "[H]"}, "--output is missing"),
        ({"output_shape": "[H]"}, "--input is missing"),
        ({"bindings": ("H=8",)}, "without a specification"),
        ({"preset": "paper/readme", "bindings": ("H=0",)}, "H"),
    ],
)
def test_half_a_specification_is_a_mistake(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        named(**given)
