"""The journal of a resumable job, and jobs that are killed while they write it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from syno import UserError
from syno.runs.journal import Journal, Lines, whole_lines

# Appends lines of a megabyte, and says after each that it is done.
_JOB = """
import sys
from pathlib import Path
from syno.runs.journal import Journal, Lines, whole_lines
import json
path = Path(sys.argv[1])
lines = Lines(path)
found = {content["n"]: content for content in map(json.loads, whole_lines(path))}
journal = Journal(found, lambda _, content: lines.add(content))
for n in journal.waiting(range(1000)):
    journal.put(n, {"n": n, "text": "x" * (1 << 20)})
    print(n, flush=True)
"""


def job(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-c", _JOB, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["n"] for line in whole_lines(path)]


def test_a_job_that_is_killed_again_and_again_does_each_step_once(tmp_path):
    path, said = tmp_path / "lines", 0
    for _ in range(4):
        with job(path) as process:
            assert process.stdout is not None
            for _ in range(3):
                said = int(process.stdout.readline())
            process.kill()  # in the middle of some later line
        assert numbers(path)[: said + 1] == list(range(said + 1))
    found = numbers(path)
    assert found == list(range(len(found)))


# Is killed when it has written a part of its third line.
_TORN = """
import os, sys
from pathlib import Path
from syno.runs.journal import Lines

class Cut:
    def __init__(self, descriptor):
        self._descriptor = descriptor
    def write(self, data):
        os.write(self._descriptor, data[:9])
        os.kill(os.getpid(), 9)

lines = Lines(Path(sys.argv[1]))
lines.add({"n": 0})
lines.add({"n": 1})
file = lines._file
lines._file = Cut(file.fileno())
lines.add({"n": 2, "text": "never whole"})
"""


def test_what_was_done_stays_and_a_line_that_was_cut_off_is_dropped_with_a_note(tmp_path):
    path = tmp_path / "lines"
    killed = subprocess.run([sys.executable, "-c", _TORN, str(path)], check=False)
    assert killed.returncode == -9
    assert path.read_bytes().endswith(b'\n{"n":2,"t')
    assert numbers(path) == [0, 1]
    with pytest.warns(UserWarning, match=r"killed while it wrote the last line of '.*lines'"):
        lines = Lines(path)
    with lines:
        lines.add({"n": 2})
    assert numbers(path) == [0, 1, 2]


def test_a_line_may_end_within_a_character_and_hold_separators(tmp_path):
    path = tmp_path / "lines"
    with Lines(path) as lines:
        lines.add({"text": "a\u2028b\x85c\r"})
    path.write_bytes(path.read_bytes() + '{"text": "ä'.encode()[:-1])
    assert [json.loads(line)["text"] for line in whole_lines(path)] == ["a\u2028b\x85c\r"]
    with pytest.warns(UserWarning), Lines(path) as lines:
        lines.clear()
        lines.add({"n": 1})
    assert path.read_bytes() == b'{"n":1}\n'


def test_what_is_done_is_not_done_again():
    kept = []
    journal = Journal({"a": 1}, lambda *what: kept.append(what))
    assert journal.once("a", lambda: 2) == 1
    assert journal.once("b", lambda: 2) == 2
    journal.put("a", 3)
    assert kept == [("b", 2), ("a", 3)]
    assert dict(journal.done) == {"a": 3, "b": 2}
    assert list(journal.waiting("abcd")) == ["c", "d"]


def test_what_could_not_be_kept_is_not_done():
    def refuse(*_: object) -> None:
        raise OSError

    journal = Journal({}, refuse)
    with pytest.raises(OSError):
        journal.put("a", 1)
    assert list(journal.waiting("a")) == ["a"]


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UserError, match=r"cannot write '.*there/lines'"):
        Lines(tmp_path / "not there" / "lines")
