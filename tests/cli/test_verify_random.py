"""`syno verify --random` and `--emitters`."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno.cli.main import cli
from syno.codegen.emitters.pytorch import PyTorchEmitter

from .conftest import CONV


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_random_operators_as_json():
    result = run("verify", "--random", "30", "--seed", "4", "--json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert (answer["operators"], answer["seed"], answer["mismatches"]) == (30, 4, 0)
    assert answer["emitters"] == ["pytorch"]
    assert 0 < answer["max_error"]["pytorch"] < 1e-5
    assert answer["seconds"] > 0
    assert answer["mix"]["window"]["count"] == round(30 * answer["mix"]["window"]["share"])
    assert answer["failures"] == []


def test_the_text_states_the_mix():
    result = run("verify", "--random", "30")
    assert result.exit_code == 0, result.output
    for words in ("rotation after a window", "three weights", "cutting mask", "mismatches"):
        assert words in result.stdout


def test_a_mismatch_ends_with_1_and_says_how_to_see_it_again(monkeypatch):
    right = PyTorchEmitter.source
    monkeypatch.setattr(
        PyTorchEmitter, "source", lambda self, case: right(self, case).replace(".sum(", ".mean(")
    )
    result = run("verify", "--random", "30", "--seed", "2")
    assert result.exit_code == 1, result.output
    again = re.search(r"reduced \(syno (verify --random 1 [^)]*)\):", result.stdout)
    assert "reduce " in result.stdout
    assert "in binding {" in result.stdout
    assert again is not None
    assert run(*again[1].split()).exit_code == 1


def test_emitters_of_one_operator():
    result = run("verify", CONV, "--binding", "C_in=4,C_out=8,H=6,k=3", "--emitters", "all")
    assert result.exit_code == 0, result.output
    assert "pytorch" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--random", "0"), "'--random'"),
        (("--random", "3", "op.txt"), "--random cannot be used with OP"),
        ((), "nothing to verify"),
        (("--random", "3", "--emitters", "torch"), "unknown emitter 'torch'"),
        (("--random", "3", "--seed", "-1"), "'seed' is an integer of at least 0"),
    ],
)
def test_mistakes_are_errors(arguments, message):
    result = run("verify", *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_ctrl_c_ends_it_and_its_processes():
    code = "from syno.cli.main import cli; cli()"
    words = ["verify", "--random", "100000", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 120
    while len(children.read_text().split()) < 2:  # both jobs, however slow the machine is
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    # Pipes end when the last process that has them has ended.
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, err
    assert out == ""
    assert "interrupted" in err
    assert "Traceback" not in err
