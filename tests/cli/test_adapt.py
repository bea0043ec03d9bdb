"""`syno adapt` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno.cli.main import cli
from syno.store import Store

QUICK = (
    "--no-widths",
    "--no-blocks",
    *("--no-zoo", "--samples", "0", "--mutations", "0", "--keep", "2"),
    *("--fit-images", "64", "--score-images", "64"),
    *("--engine", "eager", "--kernels", "eager", "--rounds", "20", "--kernel-rounds", "20"),
)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with a network that was trained for two epochs on 8x8 digits."""
    return teacher(str(tmp_path_factory.mktemp("adapt") / "runs.db"))


def teacher(path: str, *arguments: str) -> str:
    words = ("--model-option", "width=8", "--data", "digits", "--epochs", "3", "--no-latency")
    more = ("--store", path, "--name", "teacher", "--no-isolate", *arguments)
    trained = invoke("train", "--baseline", "--model", "resnet-small", *words, *more)
    assert trained.exit_code == 0, trained.output
    return path


def adapt(store: str, *arguments: str) -> Result:
    words = ("--store", store, "--study", "teacher", "--epochs", "1", *QUICK)
    return invoke("adapt", "conv1x1", "low-rank-conv", *words, *arguments)


GIVEN = ("--macs", "0.7x", "--max-drop", "90", "--name", "mine")


@pytest.fixture(scope="module")
def first(store: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """The first adaptation, and the folder with what it wrote."""
    folder = tmp_path_factory.mktemp("written")
    words = ("--report", str(folder / "page.html"), "--out", str(folder / "networks"))
    result = adapt(store, *GIVEN, *words)
    assert result.exit_code == 0, result.output
    return result, folder


def test_a_study_is_adapted_and_continued(store: str, first: tuple[Result, Path]) -> None:
    result, folder = first
    page, out = folder / "page.html", folder / "networks"
    assert "macs 0.7x" in result.stdout and "Slots of macs 0.7x" in result.stdout
    assert "body.2.second.0" in result.stdout
    assert "macs 0.7x" in page.read_text()
    assert sorted(file.suffix for file in out.iterdir()) == [".py", ".safetensors"]
    again = adapt(store, *GIVEN, "--json")
    found = json.loads(again.stdout)
    assert found["study"] == "mine" and found["best"] == "macs 0.7x"
    assert found["networks"][0]["macs"] <= 0.7 * found["original"]["macs"]
    assert len(found["networks"][0]["slots"]) == 6
    with Store.open(store) as opened:
        kinds = [event.kind for event in opened.events(opened.study("mine"))]
    assert kinds.count("stopped") == 2
    status = invoke("status", "--store", store)
    assert "adaptation" in status.stdout


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_fine_tuning_has_the_precision_of_the_training(precision: str, tmp_path: Path) -> None:
    store = teacher(str(tmp_path / "runs.db"), "--precision", precision)
    result = adapt(store, *GIVEN)
    assert result.exit_code == 0, result.output
    with Store.open(store) as opened:
        settings = opened.study("mine").settings
    assert settings["fidelity"]["recipe"]["name"] == "fast/adapt"
    assert settings["fidelity"]["recipe"]["precision"] == precision
    other = adapt(store, "--macs", "0.7x", "--name", "mine", "--precision", "float16")
    assert other.exit_code == 2
    assert "trains in float16, which needs a GPU" in other.output


@pytest.mark.slow
def test_the_test_split_is_measured_for_each_seed(tmp_path: Path) -> None:
    store = teacher(str(tmp_path / "runs.db"))
    given = (*GIVEN, "--final", "--json")
    first = json.loads(adapt(store, *given).stdout)
    both = json.loads(adapt(store, *given, "--seeds", "2").stdout)
    (network,) = both["networks"]
    assert [network["tests"][0]] == first["networks"][0]["tests"]
    assert len(network["tests"]) == len(network["values"]) == 2
    assert network["test"] == pytest.approx(sum(network["tests"]) / 2)
    assert both["original"]["test"] == first["original"]["test"]


@pytest.mark.usefixtures("first")
def test_an_adaptation_is_no_search(store: str, tmp_path: Path) -> None:
    for words in (("resume",), ("report", "-o", str(tmp_path / "x.html"))):
        result = invoke(*words, "--store", store, "--study", "mine")
        assert result.exit_code == 2
        assert "study 'mine' is an adaptation" in result.stderr, result.output
        assert "syno adapt --name mine" in result.stderr


@pytest.mark.slow
def test_a_network_that_loses_more_than_allowed_is_a_negative_result(store: str) -> None:
    result = adapt(store, "--macs", "0.12x", "--max-drop", "0", "--name", "small")
    assert result.exit_code == 1, result.output
    assert "--max-drop allows more" in result.stderr


def test_wrong_goals_and_networks_are_mistakes(store: str) -> None:
    for words, expected in (
        (("--latency", "fast"), "'latency' of a goal: 'fast'"),
        (("--latency", "1.5x"), "at most 1x"),
        (("--model", "resnet-small"), "--model and --study both name"),
        (("--weights", "x.pt"), "--weights is given without --model"),
    ):
        result = adapt(store, *words)
        assert result.exit_code == 2, words
        assert expected in result.stderr, result.stderr
    missing = invoke("adapt", "--model", "resnet-small", "--data", "digits")
    assert missing.exit_code == 2 and "random initial weights" in missing.stderr


@pytest.mark.slow
def test_a_goal_out_of_reach_is_a_mistake(store: str) -> None:
    result = adapt(store, "--macs", "0.0001x")
    assert result.exit_code == 2
    assert "the goal macs 0.0001x is out of reach" in result.stderr, result.stderr
