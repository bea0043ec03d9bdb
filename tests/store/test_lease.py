"""Who holds a lease."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys

import pytest

from syno.store.lease import EXPIRES_S, Worker, is_held

BEAT = "2026-01-01T00:00:00.000000Z"
LATER = "2026-01-01T00:01:00.000000Z"
MUCH_LATER = "2026-01-01T00:03:00.000000Z"


@contextlib.contextmanager
def worker_elsewhere():
    """A process that waits, and the name of a worker in it."""
    script = "from syno.store import Worker; print(Worker().name, flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        yield process, process.stdout.readline().strip()


def test_nobody_holds_what_has_no_lease():
    assert not is_held(None, None)


def test_a_worker_holds_its_leases_until_it_is_closed():
    worker = Worker()
    assert is_held(worker.name, BEAT)  # the heartbeat does not matter where the process is seen
    worker.close()
    assert not is_held(worker.name, BEAT)


def test_two_workers_of_one_process_are_told_apart():
    first, second = Worker(), Worker()
    first.close()
    assert not is_held(first.name, BEAT)
    assert is_held(second.name, BEAT)
    second.close()


def test_a_lease_ends_with_its_process_also_while_its_remains_are_not_collected():
    with worker_elsewhere() as (process, name):
        assert is_held(name, BEAT)
        process.kill()
        process.stdout.read()  # until it is gone; nobody has waited for it yet: a zombie
        for _ in range(1000):
            if not is_held(name, BEAT):
                break
        assert process.returncode is None
        assert not is_held(name, BEAT)


def test_a_stopped_process_holds_a_lease_only_as_long_as_its_heartbeat_is_fresh():
    with worker_elsewhere() as (process, name):
        assert is_held(name, BEAT, now=MUCH_LATER)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        assert is_held(name, BEAT, now=LATER)
        assert not is_held(name, BEAT, now=MUCH_LATER)
        process.send_signal(signal.SIGCONT)
        os.waitid(os.P_PID, process.pid, os.WCONTINUED)
        assert is_held(name, BEAT, now=MUCH_LATER)
        process.kill()


def test_a_process_with_the_number_of_a_dead_one_is_not_taken_for_it():
    worker = Worker()
    machine, process, start, _ = worker.name.split(":")
    assert not is_held(f"{machine}:{process}:{int(start) - 1}:1", BEAT)
    worker.close()


@pytest.mark.parametrize(("now", "held"), [(LATER, True), (MUCH_LATER, False)])
def test_on_another_machine_the_heartbeat_decides(now, held):
    assert EXPIRES_S == 120
    assert is_held("another:1:1:1", BEAT, now=now) is held
