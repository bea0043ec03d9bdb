"""`syno experiment`: tables, JSON, pictures, exit codes."""

from __future__ import annotations

import json

from click.testing import CliRunner

from syno.cli.main import cli

SMALL = [
    *("--input", "[H, W]", "--output", "[H, W]", "--primary", "H: 1", "--primary", "W: 1"),
    *("--coefficient", "k=3: 1", "--binding", "H=9,W=12", "--element-wise-weights", "yes"),
]


def run(command: str, *arguments: str):
    return CliRunner().invoke(cli, ["experiment", command, *SMALL, *arguments])


def test_canonical_rate_prints_a_table_beside_the_papers(tmp_path):
    picture = tmp_path / "sub" / "rate.png"
    result = run("canonical-rate", "--samples", "80", "--depth", "4", "--picture", str(picture))
    assert result.exit_code == 0, result.output
    assert "0.1818" in result.stdout
    assert "95 % confidence" in result.stdout
    assert str(picture) in result.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_canonical_rate_as_json_has_every_figure_of_the_table(tmp_path):
    result = run(
        *("canonical-rate", "--samples", "80", "--depth", "4", "--json"),
        *("--picture", str(tmp_path / "rate.png")),
    )
    found = json.loads(result.stdout)
    assert found["samples"] == sum(row["samples"] for row in found["rows"]) == 80
    assert found["paper"] == {"samples": 6452, "canonical": 86}
    assert [row["paper"] for row in found["rows"]] == [1.0, 0.1818, 0.1397, 0.044, 0.0122, 8e-4, 0]


def test_distance_ablation_prints_both_and_as_json(tmp_path):
    arguments = ("--trials", "60", "--depth", "4", "--picture", str(tmp_path / "ablation.png"))
    table = run("distance-ablation", *arguments)
    assert table.exit_code == 0, table.output
    assert "500,000,000" in table.stdout
    found = json.loads(run("distance-ablation", *arguments, "--json").stdout)
    guides = [run["guide"] for run in found["ours"]]
    assert guides == ["none", "distance", "distance-once", "bound"]
    assert [run["distinct"] for run in found["paper"]] == [0, 253]


def test_nothing_found_is_a_negative_result(tmp_path):
    result = CliRunner().invoke(
        cli,
        [
            *("experiment", "distance-ablation", "--input", "[A]", "--output", "[B]"),
            *("--primary", "A: 0", "--primary", "B: 0", "--binding", "A=4,B=6", "--trials", "5"),
            *("--picture", str(tmp_path / "none.png")),
        ],
    )
    assert result.exit_code == 1, result.output


def test_a_picture_that_cannot_be_written_is_the_users_mistake(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("canonical-rate", "--samples", "5", "--picture", str(tmp_path / "file" / "a.png"))
    assert result.exit_code == 2
    assert "error: cannot write the plot" in result.stderr
