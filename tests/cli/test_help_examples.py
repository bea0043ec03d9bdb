"""The examples at the end of a command's help are true: each line runs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from syno import Sampler, Specification
from syno.cli.framework import Command
from syno.cli.main import cli
from syno.store import Store

from .conftest import HERE, SPECIFICATION, outcome

# Commands whose examples need no data, no training and no network.
COMMANDS = ("sample", "show", "verify", "export", "status", "report")
KEY = "8e296a06" * 4  # as in the examples


def lines(name: str) -> list[str]:
    command = cli.get_command(click.Context(cli), name)
    assert isinstance(command, Command)
    return [line for _, line in command.examples if "--final" not in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the operator op.txt of the examples, and a store runs.db."""
    folder = tmp_path_factory.mktemp("examples")
    preset = Specification.preset("paper/resnet18")
    operator = Sampler.from_specification(preset, max_nodes=3000).sample()
    (folder / "op.txt").write_text(operator.text)
    with Store.open(str(folder / "runs.db")) as store:
        specification = json.loads(SPECIFICATION.to_json())
        study = store.create_study(
            "resnet-small-digits-1",
            specification=(SPECIFICATION.key, specification),
            settings={"model": "resnet-small", "data": "digits", "evaluations": 3},
            seed=0,
        )
        store.append_event(study, "started", {})
        found = Sampler.from_specification(SPECIFICATION, max_nodes=3000).sample()
        asked = store.ask(study, 1, (found.text, KEY), "worker")
        store.tell(asked.id, outcome(0.9, 1.0), HERE)
    return folder


@pytest.mark.parametrize(("name", "line"), [(n, line) for n in COMMANDS for line in lines(n)])
def test_an_example_runs(
    name: str, line: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    given: str | None = None
    for part in line.replace("\\\n", " ").partition(" > ")[0].split(" | "):
        words = shlex.split(part)
        assert words[0] == "syno"
        if words[1] == "sample":
            words += ["--max-nodes", "12000"]  # a quick enumeration shows as much
        result = CliRunner().invoke(cli, words[1:], input=given)
        assert result.exit_code == 0, result.output
        given = result.stdout
    assert given


def test_every_command_gives_examples_of_itself() -> None:
    for name in COMMANDS:
        assert all(f"syno {name} " in line for line in lines(name))
