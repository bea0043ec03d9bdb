"""`syno bench slots`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from syno.cli.main import cli
from syno.operators import zoo


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_prints_the_sums(as_json: bool) -> None:
    words = ["bench", "slots", "conv2d", "--model", "cnn-small", "--size", "8", "--rounds", "20"]
    words += ["--model-option", "width=4", "--model-option", "layers=1"]
    result = CliRunner().invoke(cli, [*words, *(["--json"] if as_json else [])])
    assert result.exit_code == 0, result.output
    if as_json:
        found = json.loads(result.stdout)
        assert [time["name"] for time in found["slots"]] == ["original", "conv2d"]
        assert found["slots"][1]["replaced"] == sum(found["kinds"].values())
    else:
        assert "over the baseline" in result.stdout
        assert "1.00x" in result.stdout


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "operator.txt"
    path.write_text(zoo.load("operator-1").text)
    result = CliRunner().invoke(cli, ["bench", "slots", str(path), "--size", "16"])
    assert result.exit_code == 2
    assert "needs values of" in result.stderr
    assert CliRunner().invoke(cli, ["bench", "slots"]).exit_code == 2
