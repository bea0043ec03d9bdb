"""`syno bench coverage`: the table and JSON of a file, and families that are not known."""

import json

from click.testing import CliRunner

from syno.cli.main import cli
from syno_lab.experiments.coverage.examine import Covered
from syno_lab.experiments.coverage.sweep import FORMAT, Coverage


def invoke(*arguments):
    return CliRunner().invoke(cli, ["bench", "coverage", *map(str, arguments)])


def test_results_are_shown_as_a_table_and_as_json(tmp_path):
    path = tmp_path / "found.json"
    rows = [
        Covered("timm/one", "net_one", 1000, (3, 4, 4), True, True, layers=7),
        Covered("timm/two", "net_two", reason="it is too large"),
    ]
    path.write_text(json.dumps(Coverage({}, rows).to_json()))
    shown = invoke("--show", "--out", path)
    assert shown.exit_code == 0, shown.output
    assert "it is too large" in shown.output
    assert "the library covers 1 of 2 networks" in shown.output
    found = json.loads(invoke("--show", "--out", path, "--json").stdout)
    assert found["format"] == FORMAT
    assert [each["whole"] for each in found["networks"]] == [True, False]


def test_a_family_that_is_not_known_is_named(tmp_path):
    said = invoke("--families", "timm/resnot", "--out", tmp_path / "found.json")
    assert said.exit_code == 2
    assert "there is no family 'timm/resnot'" in said.output
