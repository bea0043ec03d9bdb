"""`syno measure` and `syno import`: results of another machine in the store of a study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno.cli.main import cli
from syno.store import Store

QUICK = ("--data", "digits", "--model", "resnet-small", "--images", "64", "--epochs", "1")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with a secret."""
    monkeypatch.chdir(tmp_path)
    Path("secret").touch(0o600)
    Path("secret").write_text("0123456789abcdef")
    return tmp_path


@pytest.mark.slow
def test_what_another_machine_measured_comes_into_the_study() -> None:
    trained = run("train", "depthwise-separable", *QUICK, "--seeds", "1", "--store", "runs.db")
    assert trained.exit_code == 0, trained.output
    words = ("--model", "resnet-small", "--engine", "eager", "--rounds", "20", "--secret", "secret")
    named = ("--device-name", "jetson", "--bundle", "b.json")
    measured = run("measure", "depthwise-separable", *words, "--size", "8", *named)
    assert measured.exit_code == 0, measured.output
    stored = run("import", "b.json", "--store", "runs.db", "--secret", "secret", "--json")
    assert stored.exit_code == 0, stored.output
    content = json.loads(stored.stdout)
    assert content["device"].startswith("jetson: ") and content["stored"] == 1
    (row,) = content["measurements"]
    assert row["ratio"] == pytest.approx(row["median_ms"] / row["baseline_ms"])
    assert "stored before" in run("import", "b.json", "--secret", "secret").output
    other = run("measure", "depthwise-separable", *words, "--size", "16", "--bundle", "c.json")
    assert other.exit_code == 0, other.output
    refused = run("import", "c.json", "--secret", "secret")
    assert refused.exit_code == 2 and "has evaluated no operator" in refused.output
    with Store.open("runs.db", read_only=True) as store:
        assert len(store.measurements.of(store.study())) == 1


def test_a_bundle_needs_a_secret_that_is_one() -> None:
    Path("secret").chmod(0o644)
    arguments = ("conv2d", "--bundle", "b.json", "--secret", "secret")
    assert "chmod 600" in run("measure", *arguments).output
    assert "cannot read the secret" in run("import", "b.json", "--secret", "none").output
    assert "missing option '--secret'" in run("measure", "conv2d", "--bundle", "b.json").output
