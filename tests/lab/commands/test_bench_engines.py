"""`syno bench engines`: the table and JSON of a file, and what is refused."""

import json

from click.testing import CliRunner

from syno.cli.main import cli
from syno_lab.experiments.networks.process import EngineTime, ProcessTimes
from syno_lab.experiments.networks.sweep import FORMAT, NetworksTimes, Setting, Visit


def invoke(*arguments):
    return CliRunner().invoke(cli, ["bench", "engines", *map(str, arguments)])


def test_results_are_shown_as_a_table_and_as_json(tmp_path):
    path = tmp_path / "found.json"
    measured = ProcessTimes({"syno": EngineTime(2.5, 2.4, 2.6, 1.0, 1e-6)}, 1.0, 9.0, False)
    visits = [
        (Visit("resnet18", Setting(8, 2), ("syno",)), measured),
        (Visit("resnet18", Setting(8, 2), ("openvino",)), "its process ended with SIGKILL"),
    ]
    path.write_text(json.dumps(NetworksTimes({}, visits).to_json()))
    shown = invoke("--show", "--out", path)
    assert shown.exit_code == 0, shown.output
    assert "8 images, 2 threads, milliseconds" in shown.output
    assert "resnet18 in openvino: its process ended with SIGKILL" in shown.output
    found = json.loads(invoke("--show", "--out", path, "--json").stdout)
    assert found["format"] == FORMAT
    assert [each["engines"] for each in found["visits"]] == [["syno"], ["openvino"]]


def test_numbers_and_networks_that_are_none_are_named(tmp_path):
    said = invoke("--batches", "1,x", "--out", tmp_path / "found.json")
    assert said.exit_code == 2
    assert "'1,x' are no numbers of images (--batches)" in said.output
    for option in ("--batches", "--threads"):
        for number in ("0", "999999999999"):
            said = invoke(option, number, "--out", tmp_path / "found.json")
            assert said.exit_code == 2 and "expected: " in said.output
    said = invoke("--networks", "resnet17", "--out", tmp_path / "found.json")
    assert "there is no network 'resnet17'" in said.output
