"""`syno bench adaptation`: predictors of random assignments, on 8x8 digits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.test_adapt import QUICK

from syno.cli.main import cli


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("bench") / "runs.db")
    words = ("--model-option", "width=8", "--data", "digits", "--epochs", "3", "--no-latency")
    more = ("--store", path, "--name", "teacher", "--no-isolate")
    trained = invoke("train", "--baseline", "--model", "resnet-small", *words, *more)
    assert trained.exit_code == 0, trained.output
    return path


def bench(store: str, *arguments: str) -> Result:
    words = ("--store", store, "--study", "teacher", "--name", "predictors", "--epochs", "1")
    return invoke("bench", "adaptation", "conv1x1", "low-rank-conv", *words, *QUICK, *arguments)


def test_predictors_are_compared_and_the_measurement_goes_on(store: str) -> None:
    first = bench(store, "--assignments", "5", "--json")
    assert first.exit_code == 0, first.output
    found = json.loads(first.stdout)
    assert found["study"] == "predictors" and found["objective"] == "accuracy"
    assert found["fidelity"]["epochs"] == 1
    assert len(found["assignments"]) == 5
    assert set(found["candidates"]) == set(found["assignments"][0]["choice"])
    names = [each["name"] for each in found["correlations"]]
    assert names[:2] == ["sum of fit errors", "sum of one-slot losses"] and "MACs" in names
    for each in found["correlations"]:
        assert each["count"] == 5
        assert each["value"] is None or -1.0 <= each["value"] <= 1.0
    for each in found["assignments"]:
        assert 0.0 <= each["value"] <= 1.0 and each["macs"] > 0
        assert each["fit_error"] >= 0.0 and each["assembled"] >= 0.0
        kept = all(name == "original" for name in each["choice"].values())
        assert (each["fit_error"] == 0.0) == kept
    # More assignments begin with those that are known, which are not measured again.
    again = json.loads(bench(store, "--assignments", "6", "--json").stdout)
    assert again["assignments"][:5] == found["assignments"]
    assert len(again["assignments"]) == 6


def test_the_table_names_every_predictor(store: str) -> None:
    shown = bench(store, "--assignments", "5")
    assert shown.exit_code == 0, shown.output
    for text in ("predictor of the accuracy", "sum of fit errors", "MACs", "Spearman"):
        assert text in shown.stdout
    assert "5 networks of predictors" in shown.stderr


def test_mistakes_are_those_of_adapt(store: str, tmp_path: Path) -> None:
    missing = invoke("bench", "adaptation", "--model", "resnet-small", "--data", "digits")
    assert missing.exit_code == 2 and "random initial weights" in missing.stderr
    many = bench(store, "--assignments", "400000")
    assert many.exit_code == 2
    assert "different assignments" in many.stderr
