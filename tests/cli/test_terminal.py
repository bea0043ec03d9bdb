"""What reaches a terminal: texts of stores, files and processes are shown, never obeyed."""

from __future__ import annotations

import ast
import io
import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.conftest import CONV, HERE, ORIGINAL, SPECIFICATION

import syno.cli
from syno import UserError
from syno._util.command_line import command_line, report_line
from syno._util.printable import json_escaped, printable
from syno._util.tables import Table
from syno.cli import output
from syno.cli.main import cli
from syno.cli.screen import Screen
from syno.store import Outcome, Store, names
from syno.store import store as store_module

ESCAPES = "\x1b]0;renamed\x07\x1b[2J\x9b31m\u202eesrever\r"
MARKUP = "[red]red[/] [/nothing] :warning: [link=file:///etc/passwd]here[/link]"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A store of an older Syno, which refused no name, and the name of its study."""
    path, name = str(tmp_path / "a store; rm -rf.db"), f"name {ESCAPES}{MARKUP}; reboot"
    monkeypatch.setattr(store_module, "check_name", lambda _: None)
    with Store.open(path) as store:
        study = store.create_study(
            name,
            specification=(SPECIFICATION.key, json.loads(SPECIFICATION.to_json())),
            settings={"model": "resnet-small", "data": f"d{ESCAPES}{MARKUP}", "evaluations": 3},
            seed=0,
        )
        store.append_event(study, "started", {})
        from syno import Operator

        conv = (CONV, Operator.from_text(CONV, SPECIFICATION).key)
        answers = (
            (None, Outcome("ok", accuracy=0.9, macs=200_000, params=1000, latency=ORIGINAL)),
            (conv, Outcome("error", reason=f"why {ESCAPES}{MARKUP}", macs=1)),
        )
        for number, (operator, answer) in enumerate(answers):
            proposal = store.ask(study, number, operator, "worker")
            store.tell(proposal.id, answer, HERE)
    return path, name


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"], ["status", "--operators"], ["report", "-o", "page.html"],
        ["resume", "--dry-run"], ["select"], ["show", "ffff"], ["status", "--study", ESCAPES],
    ],
    ids=" ".join,
)  # fmt: skip
def test_no_command_sends_control_characters_of_a_store(
    hostile: tuple[str, str], arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command, *rest = arguments
    url = ["--store", hostile[0]] if command in ("select", "show") else [hostile[0]]
    result = CliRunner().invoke(cli, [command, *(rest if command == "show" else [])] + url
                                + ([] if command == "show" else rest))  # fmt: skip
    assert result.exit_code in (0, 1, 2)
    assert result.stdout + result.stderr
    assert not CONTROL.search(result.stdout + result.stderr)


def test_status_shows_name_and_reason_as_they_are(hostile: tuple[str, str]) -> None:
    result = CliRunner().invoke(cli, ["status", hostile[0], "--operators"], terminal_width=500)
    assert result.exit_code == 0
    shown = result.stdout.replace("\n", "")
    assert "\\x1b]0;renamed\\x07\\x1b[2J\\x9b31m\\u202eesrever" in shown
    assert "[red]red[/] [/nothing] :warning: [link=file" in shown


def test_json_holds_the_texts_exactly(hostile: tuple[str, str]) -> None:
    result = CliRunner().invoke(cli, ["status", hostile[0], "--json"])
    assert result.exit_code == 0
    assert not CONTROL.search(result.stdout)
    assert hostile[1] in json.dumps(json.loads(result.stdout), ensure_ascii=False).replace(
        "\\u001b", "\x1b"
    ).replace("\\u0007", "\x07").replace("\\r", "\r")


@pytest.mark.parametrize("text", ["\ud800", "\U000e0001", "\x9b", "\u2028", "é𝒳", "\\", '"'])
def test_json_is_escaped_without_a_change_of_its_value(text: str) -> None:
    document = json.dumps({text: [text]}, ensure_ascii=False)
    escaped = json_escaped(document)
    assert json.loads(escaped) == {text: [text]}
    assert not CONTROL.search(escaped)
    escaped.encode()


def test_the_next_command_is_quoted(hostile: tuple[str, str]) -> None:
    name = "two words; reboot $(date) `date`"
    words = ["syno", "report", "--store", hostile[0], "--study", name, "-o", "report.html"]
    assert shlex.split(report_line(hostile[0], name)) == words


def test_commands_in_messages_are_quoted(tmp_path: Path) -> None:
    line = command_line("show", "an op.txt", store="a; b.db", study=None)
    assert shlex.split(line) == ["syno", "show", "an op.txt", "--store", "a; b.db"]
    empty = tmp_path / "a b; c.db"
    Store.open(str(empty)).close()
    result = CliRunner().invoke(cli, ["status", str(empty)])
    assert f"`syno search --store '{empty}'` starts one" in result.output.replace("\n", "")
    with Store.open(str(empty)) as store:
        given = {"specification": ("key", {}), "settings": {}, "seed": 0}
        store.create_study("two words", **given)
        with pytest.raises(UserError, match=f"`syno resume --store '{empty}' --study 'two words'`"):
            store.create_study("two words", **given)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("a\x1b[31m", "holds control characters"),
        ("a\nb", "holds control characters"),
        ("a\u202eb", "holds control characters"),
        ("a\0", "holds control characters"),
        ("a\ud800", "half of a surrogate pair"),
        ("x" * 300, "has 300 characters"),
        (None, "is not a string"),
    ],
)
def test_a_new_study_has_a_printable_name(name: str, words: str) -> None:
    with (
        Store.open("sqlite:///:memory:") as store,
        pytest.raises(UserError, match=words) as refused,
    ):
        store.create_study(name, specification=("key", {}), settings={}, seed=0)
    assert "expected: " in str(refused.value)
    assert not CONTROL.search(str(refused.value))


def test_an_automatic_name_is_always_allowed() -> None:
    name = names.automatic_name("net", f"a{ESCAPES}\ud800\n" + "x" * 500)
    names.check_name(name)
    assert name.endswith("-")


def test_a_terminal_gets_colours_and_no_other_escapes() -> None:
    file = io.StringIO()
    screen = Screen(file=file, force_terminal=True, markup=False, highlight=False, width=400)
    screen.print(output.heading(f"title{ESCAPES}", f" rest{ESCAPES}{MARKUP}"))
    screen.print(f"line{ESCAPES}{MARKUP}")
    screen.print(output.grid(Table((f"head{ESCAPES}",), ((f"cell{ESCAPES}{MARKUP}",),))))
    screen.print(output.facts([["name", f"fact{ESCAPES}"]]))
    sent = file.getvalue()
    assert "\x1b[1mtitle" in sent
    assert not CONTROL.search(re.sub(r"\x1b\[[\d;]*m", "", sent))
    assert not re.search(r"\x1b\[2J|\x1b\]|\x1b\[31m", sent)
    assert sent.count("[red]red[/]") == 3


def test_a_bar_obeys_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(file, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", file)
    monkeypatch.setenv("TERM", "xterm")
    with output.progress(f"work{ESCAPES}", 10) as move:
        move(3, f"remark{ESCAPES}{MARKUP}")
    sent = file.getvalue()
    assert "\\x1b]0;renamed" in sent
    assert "\x1b]0;" not in sent
    assert "\x9b" not in sent
    assert "\u202e" not in sent


def test_errors_are_shown_like_other_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise UserError(f"no such thing: {ESCAPES}\ud800\n  expected: another one")

    monkeypatch.setattr(Store, "open", refused)
    result = CliRunner().invoke(cli, ["status", "x"])
    assert result.exit_code == 2
    said = result.stderr
    assert said.startswith("error: no such thing: \\x1b]0;renamed\\x07")
    assert said.endswith("\\ud800\n  expected: another one\n")


@pytest.mark.parametrize("text", ["plain", "Ünïcode 数 𝒳", "tab\tand\nline"])
def test_ordinary_texts_stay(text: str) -> None:
    assert printable(text) == text


def test_commands_write_in_one_place() -> None:
    """Nothing in the command line's folder writes to a stream but `output`."""
    for file in sorted(Path(syno.cli.__file__).parent.glob("*.py")):
        if file.name in ("output.py", "screen.py"):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            assert called not in ("click.echo", "click.secho", "print", "Console"), file.name
            assert not called.endswith(("stdout.write", "stderr.write", "from_markup")), file.name
            if called.endswith("TextColumn"):
                assert any(k.arg == "markup" for k in node.keywords) or (
                    "{" not in ast.unparse(node)
                ), file.name
