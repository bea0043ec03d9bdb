"""The examples at the end of a command's help are true: each line runs."""

from __future__ import annotations

import json
import shlex
import shutil
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from click.testing import CliRunner

from syno import Sampler, Specification
from syno.cli.main import cli
from syno.store import Store

from .conftest import HERE, SPECIFICATION, outcome

# Commands whose examples need no data, no training and no network.
COMMANDS = (
    *("sample", "show", "verify", "export", "status", "report"),
    *("enumerate", "explain", "why-not"),
)
GROUPS = {"rules": ("list", "show", "check", "effect")}
# A quick enumeration shows as much.
BRIEFLY = {
    "sample": ["--max-nodes", "12000"],
    "enumerate": ["--max-nodes", "1500"],
    "bench": ["--seconds", "0.5", "--walk-seconds", "0.5"],
}
RULES = """
import syno


@syno.rule("U1", "no-shift-of-reduce", kind="exact", steps=["shift"])
def no_shift_of_reduce(graph, step):
    return graph if graph.maker(step.inputs[0]) == "reduce" else None
"""
ROOT = Path(__file__).parents[2]
KEY = "8e296a06" * 4  # as in the examples


def briefly(words: list[str]) -> list[str]:
    """The command with options, which override earlier ones, that make it quick."""
    added = list(BRIEFLY.get(words[1], []))
    for option, few in (("--walks", "200"), ("--random", "30")):
        if option in words:
            added += [option, few]
    if words[1:3] == ["rules", "effect"]:
        added += ["--depth", "3"]
    return [*words[1:], *added]


def lines(name: str, part: str | None = None) -> list[str]:
    """The lines of the examples of a command, or of a part of a group."""
    package = "syno_lab" if part == "synthesis" else "syno.cli"
    path = files(package) / "examples" / f"{name}.toml"
    found = tomllib.loads(path.read_text(encoding="utf-8"))[name]
    examples = found if part is None else found[part]
    listed = [line for line in examples.values() if isinstance(line, str)]
    return [line for line in listed if "--final" not in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with op.txt, my_rules.py, results and the store runs.db of the examples."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "results").mkdir()
    shutil.copy(ROOT / "bench" / "results" / "canonical_rate.json", folder / "results")
    (folder / "my_rules.py").write_text(RULES)
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


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_a_command_run(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after another: a line may go on with the file of an earlier one."""
    monkeypatch.chdir(folder)
    for line in lines(name):
        given: str | None = None
        for part in line.replace("\\\n", " ").partition(" > ")[0].split(" | "):
            words = shlex.split(part)
            assert words[0] == "syno"
            result = CliRunner().invoke(cli, briefly(words), input=given)
            # Whether an operator is in a space is an answer, whichever it is.
            right = (0, 1) if words[1] == "why-not" else (0,)
            assert result.exit_code in right, f"{line}\n{result.output}"
            given = result.stdout
        assert given, line


PARTS = [(name, part) for name, parts in GROUPS.items() for part in (None, *parts)]


LABORATORY = pytest.param("bench", "synthesis", marks=pytest.mark.slow)


@pytest.mark.parametrize(("name", "part"), [*PARTS, LABORATORY])
def test_the_examples_of_a_group_run(
    name: str, part: str | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for line in lines(name, part):
        words = shlex.split(line.replace("\\\n", " "))
        assert words[0] == "syno"
        result = CliRunner().invoke(cli, briefly(words))
        assert result.exit_code == 0, f"{line}\n{result.output}"


def test_every_command_gives_examples_of_itself() -> None:
    for name in COMMANDS:
        assert all(f"syno {name} " in line for line in lines(name))
