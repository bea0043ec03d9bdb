"""Processes below a process, and what each is doing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from syno.runs import processes

pytestmark = pytest.mark.skipif(not processes.is_supported(), reason="needs Linux")

# Starts a child that sleeps and one that ends and is not waited for, and prints their numbers.
PARENT = """
import os, subprocess, sys, time
sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
zombie = os.fork()
if zombie == 0:
    os._exit(0)
os.waitid(os.P_PID, zombie, os.WEXITED | os.WNOWAIT)
print(sleeper.pid, zombie, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("listed", [True, False], ids=["by the kernel", "by psutil"])
def test_a_tree_holds_children_of_children_and_zombies(listed, monkeypatch):
    if listed and not processes._LISTS_CHILDREN:
        pytest.skip("this kernel does not list children")
    monkeypatch.setattr(processes, "_LISTS_CHILDREN", listed)
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    with parent:
        sleeper, zombie = map(int, parent.stdout.readline().split())
        assert {parent.pid, sleeper, zombie} <= set(processes.descendants(os.getpid()))
        assert sorted(processes.descendants(parent.pid)) == sorted([sleeper, zombie])
        assert processes.descendants(zombie) == []
        assert processes.activity(zombie).has_ended
        assert not processes.activity(sleeper).has_ended
        assert processes.threads(sleeper) == 1
        assert processes.kill_tree(parent.pid)
    assert processes.descendants(parent.pid) == []
    assert processes.activity(parent.pid).has_ended


def test_the_memory_of_the_machine_is_more_than_that_of_a_process():
    held = processes.memory([os.getpid()], sys.maxsize)
    assert 0 < held < processes.default_memory_limit() < processes.machine_memory()
