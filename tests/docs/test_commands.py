"""Commands and options that the pages name exist, and every command has its place in cli.md."""

from __future__ import annotations

import re

import click
import pytest

from syno.cli.main import cli

from .pages import PAGES, ROOT, blocks, name, prose

COMMANDS = cli.commands_by_name
_SHELL = ("console", "sh", "bash", "")
_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]*|-[a-z])(?![\w-])")
_CALL = re.compile(r"(?:^|[\s`(|])syno ((?:--?)?[a-z][\w-]*)([^`|\n]*)")


def calls(page) -> list[tuple[str, str]]:
    """(command, rest of the line) of every `syno COMMAND ...` in shell blocks and inline code."""
    shell = [block.text for block in blocks(page) if block.language in _SHELL]
    inline = re.findall(r"`(syno [^`]+)`", prose(page).replace("\n", " "))
    text = "\n".join([*shell, *inline]).replace("\\\n", " ")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    return [(c, rest) for line in lines for c, rest in _CALL.findall(line)]


def options(command: str) -> set[str]:
    context = click.Context(cli)
    found = cli.get_command(context, command)
    assert found is not None
    names = found.list_commands(context) if isinstance(found, click.Group) else ()
    parts = [found.get_command(context, name) for name in names]
    every = [found, *parts]
    return {o for c in every for p in c.params for o in (*p.opts, *p.secondary_opts)} | {
        "-h",
        "--help",
    }


def wrong(found: list[tuple[str, str]]) -> list[str]:
    result = []
    for command, rest in found:
        if command.startswith("-"):
            if command not in ("--help", "--version", "-h"):
                result.append(f"syno {command}")
            continue
        if command not in COMMANDS:
            result.append(f"syno {command}")
            continue
        known = options(command)
        # What stands in quotes is a value, not an option.
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", rest)
        result += [f"syno {command} {o}" for o in _OPTION.findall(bare) if o not in known]
    return result


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_and_options_that_a_page_names_exist(page):
    assert wrong(calls(page)) == []


def test_commands_and_options_of_the_reproduction_exist():
    script = (ROOT / "tools" / "reproduce_small.sh").read_text(encoding="utf-8")
    lines = [line for line in script.replace("\\\n", " ").splitlines() if line[:1] != "#"]
    found = [call for line in lines for call in _CALL.findall(line)]
    assert {"search", "select", "train", "tune", "bench", "report"} <= {name for name, _ in found}
    assert wrong(found) == []


def test_commands_that_measure_results_again_exist_and_name_their_files():
    script = (ROOT / "tools" / "measure.sh").read_text(encoding="utf-8")
    commands = dict(re.findall(r"\[(\w+)\]=\"((?:syno|python) .*)\"$", script, re.MULTILINE))
    minutes = set(re.findall(r"\[(\w+)\]=\d+", script))
    assert len(commands) > 10 and minutes == set(commands)
    assert [n for n in commands if not (ROOT / f"bench/results/{n}.json").is_file()] == []
    assert wrong([call for text in commands.values() for call in _CALL.findall(text)]) == []


def test_options_that_stand_alone_in_cli_md_exist():
    alone = set(re.findall(r"`(--[a-z][\w-]*)", prose(ROOT / "docs/cli.md")))
    known = {"--version"}.union(*(options(command) for command in COMMANDS))
    assert sorted(alone - known) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section_and_an_example_in_cli_md(command):
    page = ROOT / "docs/cli.md"
    assert f"\n## syno {command}\n" in page.read_text(encoding="utf-8")
    shell = [block.text for block in blocks(page) if block.language == "console"]
    assert any(re.search(rf"syno {command}\b", text) for text in shell)


def test_a_wrong_command_and_a_wrong_option_are_found():
    found = [("sampel", ""), ("sample", " --cuont 3 --seed 1"), ("show", " op.txt --dot")]
    assert wrong(found) == ["syno sampel", "syno sample --cuont"]


# Fidelities that train in float16 need a GPU, and those of the paper's text take weeks without.
_NEED_GPU = ("paper/imagenet", "paper/gpt2", "paper/gpt2-steps")


def without_gpu(found: list[tuple[str, str]]) -> list[str]:
    """The commands that cannot work as they are printed, because they train on the processor."""
    return [
        f"syno {command}{rest}"
        for command, rest in found
        if (fidelity := re.search(r"--fidelity (\S+)", rest))
        and fidelity[1] in _NEED_GPU
        and not re.search(r"--device cuda|--gpus|--precision (?!float16)|--dry-run", rest)
    ]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_at_the_scale_of_the_paper_name_a_gpu(page):
    assert without_gpu(calls(page)) == []


def test_a_training_in_float16_without_a_gpu_is_found():
    from syno.train import FIDELITIES

    half = {each.name for each in FIDELITIES if each.recipe.precision == "float16"}
    assert half <= set(_NEED_GPU)
    bad = ("train", " --model resnet18 --fidelity paper/imagenet --json")
    assert without_gpu([bad]) == [f"syno train{bad[1]}"]
    good = [(bad[0], bad[1] + " --device cuda"), ("search", " --fidelity paper/gpt2 --gpus")]
    assert without_gpu(good) == []
