"""`syno bench search` and `syno bench table`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.lab.benchmark import made

from syno.cli.main import cli
from syno_lab.benchmark import load


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", *arguments])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "made.jsonl.gz"
    made.table(seeds=2, noise=0.01).write(path)
    return path


METHODS = ("--method", "uniform", "--method", "wide@diverse:window=0.2")


def test_methods_are_compared_in_words_and_as_json(table: Path, tmp_path: Path) -> None:
    picture = tmp_path / "regret.png"
    options = ("search", "--table", str(table), *METHODS, "--seeds", "4", "--trials", "60")
    words = run(*options, "--picture", str(picture))
    assert words.exit_code == 0, words.output
    for part in (
        "uniform",
        "wide",
        "trials to the best 1.0%",
        "regret after 50",
        "/ uniform",
        "(p ",
    ):
        assert part in words.stdout
    assert picture.read_bytes()[:4] == b"\x89PNG"
    found = json.loads(run(*options, "--json").stdout)
    assert [each["method"] for each in found["methods"]] == ["uniform", "wide"]
    assert found["methods"][1]["options"] == {"window": 0.2}
    assert [len(each["reach"][0]["trials"]) for each in found["methods"]] == [4, 4]
    assert len(found["methods"][0]["anytime"]) == 60
    assert [(each["figure"], each["at"]) for each in found["comparisons"]] == [
        ("reach", 0.01),
        ("reach", 0.002),
        ("regret", 50),
    ]
    assert found["table"]["trained"] == found["table"]["operators"]
    assert found["environment"]["libraries"]["syno"]


def test_several_objectives_and_orbits_are_replayed(tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl.gz"
    made.with_original(made.table()).with_orbits(["exchange 2 3"]).write(path)
    options = ("search", "--table", str(path), "--seeds", "2", "--trials", "12")
    words = run(*options, "--objective", "accuracy", "--objective", "macs", "--orbits")
    assert words.exit_code == 0, words.output
    assert "trials to 90% of the hypervolume" in words.stdout
    found = json.loads(run(*options, "--orbits", "--json").stdout)
    table = load(path)
    assert found["table"]["trained"] == len(table.orbits) < len(table.rows)
    unknown = run(*options, "--objective", "latency_ratio")
    assert unknown.exit_code == 2
    assert "has no latencies" in unknown.stderr


def test_runs_are_the_same_with_more_processes(table: Path) -> None:
    options = ("search", "--table", str(table), "--seeds", "3", "--trials", "20", "--json")
    one, two = (json.loads(run(*options, "--jobs", n).stdout)["methods"] for n in ("1", "2"))
    assert one == two


def test_a_mistake_is_named(table: Path) -> None:
    for arguments, words in (
        (("--table", "nothing"), "there is no table 'nothing'"),
        (("--table", str(table), "--method", "nothing"), "no search method 'nothing'"),
        (("--table", str(table), "--method", "uniform:x"), "NAME:OPTION=VALUE"),
    ):
        result = run("search", *arguments)
        assert result.exit_code == 2
        assert words in result.stderr


def test_a_table_is_made_continued_and_shown(tmp_path: Path) -> None:
    path = tmp_path / "made.jsonl.gz"
    settings = tmp_path / "made.toml"
    settings.write_text(
        """
        summary = "a table of a test"
        data = "digits"
        model = "cnn-small"
        model_options = { width = 8, layers = 1, stages = 1 }
        least_macs = 0.0
        operators = 2
        repeated = 1
        best = 1

        [specification]
        input = "[N, C_in: unordered, H, H]"
        output = "[N, C_out: unordered, H, H]"
        primary = ["N: 0", "C_in: 2", "C_out: 4", "H: 0"]
        coefficient = ["k=3: 2"]
        passed_through = [[0, 0]]
        max_depth = 4
        min_unfold_ratio = 1.3

        [fidelity]
        name = "digits"
        images = 60
        epochs = 1
        batch = 30
        """
    )
    missing = run("table", "--out", str(path), "--show")
    assert missing.exit_code == 2
    assert "create it with --configuration" in missing.stderr
    first = run("table", "--configuration", str(settings), "--out", str(path), "--limit", "4")
    assert first.exit_code == 1, first.output
    assert "1 of 2 operators trained, 4 trainings" in first.stdout
    assert "trainings are pending: `syno bench table --out" in first.stderr
    second = run("table", "--out", str(path), "--json")
    assert second.exit_code == 0, second.output
    found = json.loads(second.stdout)
    assert found["trained"] == found["operators"] == 2
    assert found["name"] == "made"
    assert 0 <= found["original"] <= 1
    shown = run("table", "--out", str(path), "--show")
    assert shown.exit_code == 0, shown.output
    assert load(path).is_complete
