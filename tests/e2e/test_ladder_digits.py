"""A search with a ladder on real images, from the command line to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from syno.cli.main import cli
from syno.store import Store

# Two rungs of one training, over one that has half of the images.
STEADY = """
recipe = "fast/steady"
batch = 32
crop = 1
flip = false
ema = 0.97
resolution = 8
holdout = 0.25
"""
LADDER = f"""
eta = 3

[[rung]]
name = "few"
recipe = "fast/digits"
images = 540
resolution = 8
epochs = 3
holdout = 0.25

[[rung]]
name = "all"
epochs = 3
{STEADY}
[[rung]]
name = "longer"
epochs = 6
{STEADY}
"""


@pytest.mark.slow
def test_a_search_climbs_a_ladder_of_ones_own_on_the_digits(tmp_path):
    (tmp_path / "mine.toml").write_text(LADDER)
    store, page = str(tmp_path / "runs.db"), str(tmp_path / "report.html")
    options = ["--model", "cnn-small", "--model-option", "layers=1", "--no-isolate"]
    options += ["--model-option", "width=6", "--model-option", "stages=2"]
    options += ["--evaluations", "9", "--max-nodes", "4000", "--max-slowdown", "1000"]
    options += ["--repeats", "20", "--seed", "1", "--store", store]
    run = CliRunner().invoke
    found = run(
        cli,
        ["search", "--data", "digits", "--ladder", str(tmp_path / "mine.toml"), *options],
        catch_exceptions=False,
    )
    assert found.exit_code == 0, found.output
    assert "rung 3" in found.output

    told = json.loads(run(cli, ["status", store, "--json"]).stdout)["studies"][0]
    few, everything, longer = told["rungs"]
    assert few["evaluated"] == 9
    assert few["promoted"] == everything["evaluated"] >= 3
    assert everything["promoted"] == longer["evaluated"] >= 1
    assert told["trained"] == 9
    assert told["best"]["rung"] == "longer"
    assert told["baseline_accuracy"] == longer["baseline"] > 0.6
    with Store.open(store, read_only=True) as opened:
        summary = opened.summary()
    epochs = {"few": 3, "all": 3, "longer": 6}
    for evaluation in summary.evaluations:
        assert evaluation.details["resumed_at"] == (3 if evaluation.rung == "longer" else 0)
        assert len(evaluation.details["losses"]) == epochs[evaluation.rung]

    table = run(cli, ["status", store, "--operators"]).stdout
    assert "the best 1/3 are promoted" in table
    assert run(cli, ["report", store, "-o", page]).exit_code == 0
    html = Path(page).read_text(encoding="utf-8")
    assert '<section id="rungs">' in html
    assert 'id="rungs-scores"' in html
    chosen = run(cli, ["select", "--store", store, "--top", "9", "--json"])
    assert len(json.loads(chosen.stdout)["operators"]) == longer["evaluated"]
