"""Exit codes, error texts, help and laziness: what every command gets."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from syno._util.errors import UserError
from syno.cli.main import cli
from syno.store import Store

COMMANDS = cli.commands_by_name


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def raising(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Make `syno status STORE` do `work` where it opens the store."""
    monkeypatch.setattr(Store, "open", lambda *_args, **_options: work())


def test_the_overview_names_every_command() -> None:
    result = run("--help")
    assert result.exit_code == 0
    _, listed = result.output.split("\nCommands:\n")
    assert re.findall(r"^  (\S+)", listed, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_and_json(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0, result.output
    assert "\nExamples:\n  # " in result.output
    assert f"\n  syno {name}" in result.output or f"| syno {name}" in result.output
    assert "--json" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nonsense"],
            "error: no such command 'nonsense'\n  `syno --help` lists the options\n",
        ),
        (
            ["show", "x", "--nonsense"],
            "error: no such option '--nonsense'\n  `syno show --help` lists the options\n",
        ),
        (["show"], "error: missing argument 'OP'\n  `syno show --help` lists the options\n"),
    ],
)
def test_a_wrong_command_line_is_a_mistake_with_a_hint(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == message


def test_a_users_mistake_has_no_traceback_and_exit_code_2(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        raise UserError("cannot do this\n  expected: that")

    raising(monkeypatch, work)
    result = run("status", "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: cannot do this\n  expected: that\n"


def test_a_fault_says_how_to_report_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SYNO_DEBUG", raising=False)
    raising(monkeypatch, lambda: 1 // 0)
    result = run("status", "x")
    assert result.exit_code == 70
    assert "error: a fault in Syno: ZeroDivisionError" in result.stderr
    assert "SYNO_DEBUG=1" in result.stderr
    assert "Traceback" not in result.stderr


def test_syno_debug_shows_the_traceback_of_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNO_DEBUG", "1")
    raising(monkeypatch, lambda: 1 // 0)
    assert isinstance(run("status", "x").exception, ZeroDivisionError)


def test_a_negative_result_is_exit_code_1() -> None:
    walls = ["--input", "[A]", "--output", "[B]", "--primary", "A: 0", "--primary", "B: 0"]
    result = run("enumerate", *walls, "--binding", "A=4,B=5", "--depth", "1")
    assert result.exit_code == 1, result.output


def test_an_interrupt_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> None:
        raise KeyboardInterrupt

    raising(monkeypatch, work)
    result = run("status", "x")
    assert result.exit_code == 130
    assert result.stderr.endswith("error: interrupted\n")


def test_a_reader_that_goes_away_is_no_error() -> None:
    line = f"{sys.executable} -m syno.cli --help | head -n 1"
    result = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert result.stdout.startswith("Usage: syno")
    assert result.stderr == ""


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from syno.cli.main import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "heavy = {'torch', 'sqlalchemy', 'matplotlib', 'plotly', 'rich', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)), len(sys.modules), sep='\\n', file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True
    )
    # Seconds depend on how busy the machine is, the number of modules does not.
    heavy, count = result.stderr.splitlines()
    assert heavy == "[]"
    assert int(count) < 400
