"""`syno bench`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result
from tests.cli.test_enumerate import SHAPES

from syno.cli.main import cli
from syno_lab.experiments.synthesis import FIGURES, WALK_FIGURES


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "synthesis", *arguments])


def test_every_figure_is_measured_and_described() -> None:
    result = run(*SHAPES, "--seconds", "20", "--depth", "5", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(FIGURES) <= set(found)
    assert found["exhausted"]
    assert found["complete_depth"] == 5
    assert 0 < found["time_to_first_s"] <= found["seconds"] < 20
    assert found["distinct_per_s"] == pytest.approx(found["keys"] / found["seconds"], rel=0.01)
    assert found["duplicate_rate"] == 0
    assert found["leak_rate"] == pytest.approx(1 - found["keys"] / found["operators"], abs=1e-5)
    assert found["yield"] == 1
    assert 0 < found["accepted_share"] <= 1
    assert not set(WALK_FIGURES) & set(found)
    assert found["rss_mb"] >= found["rss_before_mb"] > 1
    assert found["machine"]["cores"] >= 1
    assert found["versions"]["syno"]
    assert found["specification"]["key"]


def test_time_ends_it_and_the_table_explains_itself() -> None:
    result = run("--preset", "paper/resnet18", "--seconds", "0.5")
    assert result.exit_code in (0, 1), result.output
    for name, words in FIGURES.items():
        assert name in result.stdout
        assert words in result.stdout


def test_nothing_found_is_a_negative_result() -> None:
    result = run(*SHAPES, "--depth", "1", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["keys"] == 0
    assert "no operator was found" in result.stderr


def test_walks_go_on_to_the_full_depth() -> None:
    arguments = ("--preset", "paper/resnet18", "--seconds", "5", "--max-nodes", "3000")
    result = run(*arguments, "--walk-seconds", "0.5", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert set(WALK_FIGURES) <= set(found)
    assert 0 < found["walk_new"] <= found["walk_operators"] <= found["walk_at_least"]
    assert found["walk_distinct_per_s"] > 0
    result = run(*SHAPES, "--depth", "4", "--walk-seconds", "0.5")
    assert result.exit_code == 0, result.output
    assert "walk_coverage" in result.stdout


def test_training_steps_of_a_named_and_a_sampled_operator() -> None:
    size = ("--model", "cnn-small", "--model-option", "width=4", "--size", "8", "--batch", "4")
    more = ("--operators", "conv1x1", "--sampled", "1", "--rounds", "2", "--json")
    result = CliRunner().invoke(cli, ["bench", "training", *size, *more])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["input"] == [4, 3, 8, 8]
    named, sampled = found["times"]
    assert named["name"] == "conv1x1"
    assert sampled["formula"].startswith("y[n,o,h,w]")
    for time in (named, sampled):
        assert time["compiled"] > 0 and time["eager"] > 0 and time["compile_s"] > 0
    product = named["compiled"] * sampled["compiled"]
    assert found["geometric_mean"] == pytest.approx(product**0.5)
