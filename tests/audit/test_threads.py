"""Every public function from several threads at once: each result is that of one thread alone."""

from __future__ import annotations

import collections
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from .public_calls import LEFT_OUT, audit_seconds, calls, plain, public_code

THREADS = 8
SEED = 1


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return calls(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="module")
def alone(table):
    """What each call gives in one thread, and the code that all of them ran."""
    ran = set()

    def note(frame, event, _argument):
        if event == "call":
            ran.add(frame.f_code)

    sys.setprofile(note)
    try:
        found = {name: [plain(call()) for call in each] for name, each in table.items()}
    finally:
        sys.setprofile(None)
    return found, ran


@pytest.mark.slow
def test_every_public_name_is_called(alone):
    _, ran = alone
    code = public_code()
    missing = [name for name, code in code.items() if name not in LEFT_OUT and code not in ran]
    assert missing == [], "no call of public_calls.py runs these"
    assert set(LEFT_OUT) <= set(code), "these are left out and not there"


@pytest.mark.slow
def test_the_calls_give_the_same_when_they_are_repeated(table, alone):
    expected, _ = alone
    for name, each in table.items():
        assert [plain(call()) for call in each] == expected[name], name


@pytest.mark.slow
def test_results_in_threads_are_those_of_one_thread(table, alone):
    """SYNO_AUDIT_SECONDS (60) of calls in a random order from 8 threads."""
    expected, _ = alone
    seconds = audit_seconds(60)
    print(f"{THREADS} threads for {seconds:g} s, seed {SEED}")
    ran, wrong = run_in_threads(table, expected, time.monotonic() + seconds)
    print(f"{sum(ran.values()):,} calls, least often {min(ran.items(), key=lambda item: item[1])}")
    assert wrong == []
    assert set(ran) == set(table), "the time was too short for every call"


def run_in_threads(table, expected, until):
    """How often each call ran by then, and which gave another result."""
    each = [(name, n) for name, group in table.items() for n in range(len(group))]
    ran, wrong = collections.Counter(), []
    together = threading.Barrier(THREADS)

    def work(number):
        order = random.Random(SEED + number)
        own = collections.Counter()
        together.wait()
        while time.monotonic() < until and not wrong:
            for name, n in order.sample(each, len(each)):
                try:
                    found = plain(table[name][n]())
                except Exception as error:
                    found = error
                own[name] += 1
                if found != expected[name][n]:
                    wrong.append((name, n, f"{found!r:.500}", f"{expected[name][n]!r:.500}"))
                if time.monotonic() >= until or wrong:
                    break
        return own

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # Python's own code is interrupted fifty times as often
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            for own in pool.map(work, range(THREADS)):
                ran.update(own)
    finally:
        sys.setswitchinterval(before)
    return ran, wrong


def test_a_call_that_threads_disturb_is_found():
    """The loop itself: a function with one workspace for all threads fails it."""
    workspace = [0]

    def shared(number):
        workspace[0] = number
        time.sleep(0.001)
        return workspace[0]

    table = {"shared": [lambda: shared(1), lambda: shared(2)]}
    _, wrong = run_in_threads(table, {"shared": [1, 2]}, time.monotonic() + 5)
    assert wrong
