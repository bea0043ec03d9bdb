"""Files of enumerations that cannot be gone on with: damaged, or of another origin."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from .bad_input import Ended, Options, check, line, run


@pytest.fixture(scope="module")
def space_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("space") / "small.space"
    ended = run([*line("enumerate", {"--depth": "3", "--file": str(file)})])
    assert ended.code == 0, ended
    return file


def resumed(file: Path, **changes: str) -> Ended:
    named: Options = {f"--{name.replace('_', '-')}": value for name, value in changes.items()}
    return run(line("enumerate", {"--depth": "4", "--file": str(file), "--resume": ""} | named))


def sections(data: bytes) -> Iterator[tuple[str, int]]:
    """Places inside every part of a file."""
    yield "in the first line", 5
    yield "behind the first line", data.index(b"\n") + 1
    yield "in what it was made for", data.index(b"limit max_depth") + 4
    yield "in the rules", data.index(b"rule ") + 3
    yield "in the first check sum", data.index(b"end\t") + 10
    begin = data.index(b"\n", data.index(b"end\t")) + 1
    yield "behind what it was made for", begin
    for part in range(1, 20):
        yield f"at {part} twentieths of the rest", begin + (len(data) - begin) * part // 20
    yield "in the last check sum", len(data) - 7
    yield "before the last byte", len(data) - 1


def test_a_file_that_is_cut_off_anywhere(space_file: Path, tmp_path: Path) -> None:
    data = space_file.read_bytes()
    for name, place in sections(data):
        file = tmp_path / "cut.space"
        file.write_bytes(data[:place])
        ended = resumed(file)
        message = "no file of an enumeration" if place < 19 else "is damaged: "
        check(ended, message, str(file))
        assert "hint: " in ended.message, name


def test_a_file_with_a_wrong_byte_anywhere(space_file: Path, tmp_path: Path) -> None:
    data = bytearray(space_file.read_bytes())
    for _, place in sections(bytes(data)):
        file = tmp_path / "wrong.space"
        wrong = data.copy()
        wrong[place] ^= 0x11
        file.write_bytes(wrong)
        check(resumed(file), str(file), "hint: ")


OTHERS = {
    "limit": ({"max_shifts": "1"}, "in limit max_shifts\n  expected: 1      got: 2"),
    "budget": (
        {"coefficient": "k=3: 2"},
        "in variable k\n  expected: k=3: 2, coefficient      got: k=3: 1, coefficient",
    ),
    "binding": ({"binding": "C_in=4,C_out=8,H=12"}, "in binding k=3,C_in=4,C_out=8,H=12\n"),
    "shape": ({"output": "[H, C_out]"}, "in output\n  expected: [H, C_out]      got: [C_out, H]"),
    "passed through": ({"passed_through": "1:1"}, "in passed through\n  expected: 1:1      got: "),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_file_of_another_specification(case: str, space_file: Path) -> None:
    changes, part = OTHERS[case]
    check(resumed(space_file, **changes), "was made for another specification", part, "hint: ")


def test_a_file_of_other_rules(space_file: Path) -> None:
    ended = resumed(space_file, rule="R6a=off")
    part = "in rule R6a view-above-share\n  expected: off      got: on, version "
    check(ended, "was made with other rules", part, "--rule ID=off")


def test_a_file_that_is_none(space_file: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.space"
    empty.touch()
    check(resumed(empty), "is no file of an enumeration", "got: an empty file", "hint: ")
    text = tmp_path / "text.space"
    text.write_text("graphs: 12\n")
    check(resumed(text), "is no file of an enumeration", "got: something else", "hint: ")
    newer = tmp_path / "newer.space"
    newer.write_bytes(space_file.read_bytes().replace(b"enumeration 1", b"enumeration 9", 1))
    check(resumed(newer), 'got: "syno enumeration 9"', "hint: install the Syno that wrote it")
    check(resumed(tmp_path), "cannot write the file of an enumeration", "got: a folder")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    door = tmp_path / "door.space"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(door)[-100:] if len(str(door)) > 100 else str(door))
        check(resumed(door), "cannot read the file of an enumeration", "got: no regular file")
    if os.geteuid() == 0:
        return  # root reads everything
    locked = tmp_path / "locked.space"
    locked.write_text("x")
    locked.chmod(0)
    check(resumed(locked), "cannot read the file of an enumeration", "Permission denied")


def test_a_file_that_is_there_is_not_overwritten(space_file: Path) -> None:
    before = space_file.read_bytes()
    ended = run(line("enumerate", {"--file": str(space_file)}))
    check(ended, f"the file '{space_file}' exists already", "what to do: add --resume")
    assert space_file.read_bytes() == before
