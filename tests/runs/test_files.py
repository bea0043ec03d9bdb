"""Files that appear whole, and what killed writers leave."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from syno.runs.files import PRIVATE, replacing, target_name

_WRITE = """
import sys
from pathlib import Path
from syno.runs.files import replacing
with replacing(Path(sys.argv[1])) as to:
    to.write_text("a part")
    print(to.name, flush=True)
    sys.stdin.read()
"""


@contextmanager
def writer(path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process in the middle of writing a file, and the name under which it writes."""
    command = [sys.executable, "-c", _WRITE, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
        process.kill()


@pytest.mark.parametrize("name", ["a.json", "a.tar.gz", "plain", ".hidden", "[a]*.txt"])
def test_what_a_killed_writer_leaves_is_gone_with_the_next_write_of_that_file(tmp_path, name):
    path, other = tmp_path / name, tmp_path / "other.json"
    foreign = tmp_path / f".{path.stem}.backup.old{path.suffix}"
    foreign.write_text("of the user")
    with writer(path) as (process, part):
        process.kill()
    assert (tmp_path / part).read_text() == "a part"
    assert target_name(part) == name
    with replacing(other) as to:
        to.write_text("another file")
    assert (tmp_path / part).exists()
    with replacing(path) as to:
        to.write_text("whole")
    assert {file.name for file in tmp_path.iterdir()} == {name, other.name, foreign.name}
    assert path.read_text() == "whole"


def test_what_another_process_writes_at_the_moment_stays(tmp_path):
    path = tmp_path / "a.json"
    with writer(path) as (process, part):
        with replacing(path) as to:
            to.write_text("mine")
        assert (tmp_path / part).exists()
        process.communicate("")
    assert path.read_text() == "a part"  # the last one to end
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_file_is_private_while_it_is_written_and_has_its_mode_afterwards(tmp_path):
    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    for wanted in (0o644, PRIVATE):
        with replacing(tmp_path / "a", mode=wanted) as to:
            assert mode(to) == PRIVATE
        assert mode(tmp_path / "a") == wanted


def test_after_an_error_the_file_is_as_before(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(ArithmeticError), replacing(path) as to:
        to.write_text("new")
        raise ArithmeticError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["a.json", ".a.json", ".a.syno-.json", ".a.syno-xyz.json"])
def test_other_names_are_their_own(name):
    assert target_name(name) == name
