"""What --json prints can be committed as it is: with its command, its machine and its commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from syno.cli.main import cli
from syno.store.environment import capture_environment

COMMANDS = [
    ["verify", "--random", "2", "--emitters", "pytorch", "--jobs", "1"],
    ["rules", "effect", "--preset", "paper/resnet18", "--depth", "3", "--only", "R1a"],
    ["experiment", "canonical-rate", "--preset", "paper/resnet18", "--samples", "2"],
    pytest.param(
        ["experiment", "distance-ablation", "--preset", "paper/resnet18", "--trials", "2000"],
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[1])
def test_results_name_their_command_machine_and_commit(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, [*words, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    here = capture_environment(threads=1, rules="")
    assert found["command"].startswith(f"syno {' '.join(words[:2])}")
    assert found["environment"]["commit"] == here.commit
    assert found["environment"]["device"] == here.device
    assert found["environment"]["threads"] >= 1
