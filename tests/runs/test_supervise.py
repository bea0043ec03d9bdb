"""When a process is started again, and when it is given up."""

from __future__ import annotations

import subprocess
import sys

import pytest

from syno.runs.supervise import Policy, Restarts, wait_or_kill

POLICY = Policy(most=4, early_s=10.0, first_s=1.0, most_s=3.0)


def test_pauses_double_up_to_the_most_and_then_it_is_given_up():
    restarts = Restarts(POLICY)
    assert [restarts.failed(1.0) for _ in range(4)] == [1.0, 2.0, 3.0, None]


def test_a_late_failure_is_the_first_one_in_a_row():
    restarts = Restarts(POLICY)
    assert [restarts.failed(seconds) for seconds in (1.0, 1.0, 10.0, 1.0)] == [1.0, 2.0, 1.0, 2.0]


@pytest.mark.parametrize(("seconds", "pause"), [(10.0, 3.0), (10.1, 1.0)])
def test_a_process_that_works_has_not_failed(seconds, pause):
    restarts = Restarts(POLICY)
    restarts.failed(1.0)
    restarts.failed(1.0)
    restarts.works(seconds)
    assert restarts.failed(1.0) == pause


def test_without_numbers_every_failure_counts_and_nothing_waits():
    restarts = Restarts(Policy(most=3))
    assert [restarts.failed(1e9) for _ in range(3)] == [0.0, 0.0, None]
    restarts.reset()
    assert restarts.failed(0.0) == 0.0


@pytest.mark.parametrize(("wait", "code"), [(False, 3), (True, -9)])
def test_a_process_that_does_not_end_is_killed(wait, code):
    program = "import sys; sys.stdin.read() if sys.argv[1] == 'True' else sys.exit(3)"
    command = [sys.executable, "-c", program, str(wait)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        assert wait_or_kill(process, 0.1 if wait else 60.0) == code
