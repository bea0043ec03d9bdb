"""`syno experiment ranking`."""

import json

import pytest
from click.testing import CliRunner, Result

from syno.cli.main import cli
from syno_lab.experiments.ranking import RankingFile


def syno_cli(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


@pytest.mark.slow
def test_a_table_is_made_trained_and_gone_on_with(tmp_path):
    path, picture = tmp_path / "table.jsonl", tmp_path / "picture.png"
    given = ["--data", "digits", "--model", "cnn-small", "--model-option", "width=4"]
    given += ["--operators", "2", "--low", "digits", "--high", "digits", "--high-epochs", "1"]
    given += ["--arms", "0", "--seeds", "1", "--max-slowdown", "100", "--limit", "1"]
    first = syno_cli("experiment", "ranking", *given, "--out", str(path))
    assert first.exit_code == 1, first.stderr
    assert "not finished" in first.stderr
    table = RankingFile.read(path)
    assert len(table.runs) == 1
    assert sum(not each.name for each in table.entries) == 2
    assert table.settings.train_images == 1078
    assert {"conv2d", "operator-1"} <= {each.name for each in table.entries}

    again = syno_cli("experiment", "ranking", "--out", str(path), "--limit", "1")
    assert again.exit_code == 1
    runs = RankingFile.read(path).runs
    assert len(runs) == 2
    assert runs[0] == table.runs[0]
    assert all(run.accuracy > 0.05 and run.seconds > 0 for run in runs)

    shown = syno_cli(
        "experiment", "ranking", "--out", str(path), "--show", "--json", "--picture", str(picture)
    )
    assert json.loads(shown.stdout)["trained_low"] == 2
    assert picture.stat().st_size > 10_000


def test_mistakes_are_told(tmp_path):
    missing = str(tmp_path / "none.jsonl")
    found = syno_cli("experiment", "ranking", "--out", missing, "--show")
    assert (found.exit_code, "there is no table" in found.stderr) == (2, True)
    found = syno_cli("experiment", "ranking", "--out", missing)
    assert (found.exit_code, "expected: --data" in found.stderr) == (2, True)
