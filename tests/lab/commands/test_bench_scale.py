"""`syno bench scale`."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from syno.cli.main import cli
from syno.store import Store


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "scale", *arguments])


def test_a_simulation_in_words(tmp_path: Path) -> None:
    picture = tmp_path / "scale.png"
    found = run("--workers", "1,3", "--trial-seconds", "30", "--picture", str(picture))
    assert found.exit_code == 0, found.output
    for part in ("trials of 30 s", "of ideal", "limited by", "under the lock", "tell", "propose"):
        assert part in found.stdout
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_a_simulation_as_json_in_a_store_of_ones_own(tmp_path: Path) -> None:
    store = tmp_path / "scale.db"
    options = ("--workers", "2", "--trial-seconds", "40", "--latency-ms", "2", "--seed", "3")
    found = run(*options, "--failures", "0.1", "--store", str(store), "--json")
    assert found.exit_code == 0, found.output
    read = json.loads(found.stdout)
    assert read["load"] == {
        "trial_seconds": 40.0,
        "failures": 0.1,
        "stragglers": 0.0,
        "latency": 0.002,
    }
    (result,) = read["results"]
    assert result["workers"] == 2
    assert 0 < result["efficiency"] <= 1.1
    assert {each["name"] for each in result["operations"]} >= {"propose", "take", "tell"}
    with Store.open(str(store), read_only=True) as opened:
        assert opened.study().name == "scale-2-1"


def test_mistakes_are_named() -> None:
    for options, message in (
        (("--workers", "5000"), "a simulation has 1 to 4,096 workers"),
        (("--workers", "few"), "are no numbers of workers"),
        (("--workers", "1", "--failures", "1.5"), "a share of the trials"),
        (("--workers", "1", "--method", "magic"), "there is no search method 'magic'"),
        (("--workers", "1", "--store", "no/such/folder/scale.db"), "cannot be created"),
    ):
        found = run(*options)
        assert found.exit_code == 2, found.output
        assert message in found.stderr
