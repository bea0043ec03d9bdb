"""Compilation for the next evaluation: it harms nothing, whatever happens to it."""

from __future__ import annotations

import faulthandler
import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from syno.runs import processes
from syno.store import Store
from syno.study import Study, run
from syno.study.evaluate import ahead, isolated_evaluator, server_process
from syno.study.evaluate.ahead import Ahead
from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator

from .fakes import FakeEvaluator, FakeSpace
from .test_study import settings

sys.path.insert(0, str(Path(__file__).parent))
import hostile  # the other process imports it by this name, too

pytestmark = pytest.mark.skipif(not processes.is_supported(), reason="needs Linux")


def until(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_the_end_of_the_process_is_waited_for(tmp_path):
    with Ahead() as beside:
        quiet = beside.start(lambda: (time.sleep(0.2), (tmp_path / "a").write_text("done")))
        assert beside.child in processes.descendants(os.getpid())
        assert beside.child not in processes.descendants(os.getpid(), beside.child)
        ahead.wait(quiet)
        assert (tmp_path / "a").read_text() == "done"
        os.close(quiet)
        beside.finish()
        assert beside.child is None
    ahead.wait(None)


def test_it_has_a_lower_priority(tmp_path):
    with Ahead() as beside:
        os.close(beside.start(lambda: (tmp_path / "nice").write_text(str(os.nice(0)))))
        beside.finish()
    assert int((tmp_path / "nice").read_text()) == 19


def abort():
    faulthandler.disable()  # what it prints would look like a crash of the tests
    os.abort()


@pytest.mark.parametrize("how", [abort, lambda: os._exit(3), lambda: 1 / 0])
def test_a_process_that_crashes_is_over(how):
    with Ahead() as beside:
        quiet = beside.start(how)
        ahead.wait(quiet)
        os.close(quiet)
        beside.finish()
    assert beside.child is None


def test_a_process_that_hangs_is_killed_with_what_it_started(monkeypatch):
    monkeypatch.setattr(ahead, "MOST_S", 0.5)
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    with Ahead() as beside:
        quiet = beside.start(lambda: subprocess.run(sleeper, check=True))
        child = beside.child
        until(lambda: processes.descendants(child))
        (program,) = processes.descendants(child)
        ahead.wait(quiet)
        os.close(quiet)
        beside.finish()
    until(lambda: processes.activity(program).has_ended)
    until(lambda: processes.activity(child).has_ended)


def test_the_end_of_a_block_kills_it():
    with Ahead() as beside:
        os.close(beside.start(lambda: time.sleep(600)))
        child = beside.child
    until(lambda: processes.activity(child).has_ended)


@pytest.fixture(scope="module", autouse=True)
def two_cores():
    """With one core, nothing is compiled ahead; without torch's compiler, processes are quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolated_evaluator, "usable_cores", lambda: 2)
        patch.setattr(server_process, "_MODULE", "quick_server")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ahead")


def make(folder, most):
    ahead.MOST_S = most  # in the process that forks
    return hostile.make(folder)


@pytest.fixture(scope="module")
def evaluator(folder):
    factory = functools.partial(make, str(folder), 3.0)
    with IsolatedEvaluator(factory, memory_limit=900 << 20, deadline_s=60.0) as made:
        yield made


def test_the_announced_operator_is_compiled_beside_the_next_evaluation(evaluator, folder):
    evaluator.announce("fine")
    assert evaluator.evaluate("fine").accuracy == 0.5
    until(lambda: (folder / "ahead-fine").exists())
    for note in folder.iterdir():
        note.unlink()
    assert evaluator.evaluate("fine").accuracy == 0.5  # what was announced counts once
    assert evaluator.baseline().accuracy == 0.9
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "what",
    [
        "segfault",
        "exit:3",
        "signal:SIGKILL",
        pytest.param("eat:2000", marks=pytest.mark.slow),
        pytest.param("hang", marks=pytest.mark.slow),
    ],
)
def test_what_happens_to_it_is_no_matter_of_an_evaluation(evaluator, folder, what):
    for _ in range(2):
        evaluator.announce(what)
        outcome = evaluator.evaluate("fine")
        assert (outcome.status, outcome.accuracy) == ("ok", 0.5)
    assert evaluator.evaluate("fine").accuracy == 0.5
    assert processes.descendants(evaluator._server.pid) == []
    assert not (folder / f"ahead-{what.replace(':', '-')}").exists()


def test_a_failing_evaluation_leaves_it_alone(evaluator, folder):
    evaluator.announce("sleep:1")
    crash = evaluator.evaluate(hostile.HostileOperator("segfault"))
    assert crash.details["failure"] == "crash"
    until(lambda: (folder / "ahead-sleep-1").exists())
    assert evaluator.evaluate("fine").accuracy == 0.5


def test_it_ends_with_the_search(folder):
    with IsolatedEvaluator(functools.partial(hostile.make, str(folder))) as made:
        made.announce("hang")
        assert made.evaluate("fine").accuracy == 0.5
        began = folder / "ahead-hang.began"
        until(began.exists)
        child = int(began.read_text())
        assert not processes.activity(child).has_ended
    until(lambda: processes.activity(child).has_ended)


@pytest.mark.slow
def test_it_ends_when_the_process_that_forks_is_killed(folder):
    with IsolatedEvaluator(functools.partial(hostile.make, str(folder))) as made:
        began = folder / "ahead-hang.began"
        began.unlink(missing_ok=True)
        made.announce("hang")
        assert made.evaluate("fine").accuracy == 0.5
        until(began.exists)
        os.kill(made._server.pid, signal.SIGKILL)
        until(lambda: processes.activity(int(began.read_text())).has_ended)


class Told(FakeEvaluator):
    """Notes what it is told to expect, and what it is given."""

    def __init__(self):
        super().__init__()
        self.expected, self.given = [], []

    def announce(self, operator):
        self.expected.append(None if operator is None else operator.key)

    def evaluate(self, operator):
        self.given.append(operator.key)
        return super().evaluate(operator)


@pytest.mark.parametrize("method", ["uniform", "diverse"])
def test_the_next_operator_is_known_before(method):
    with Store.open("sqlite://") as store:
        study = Study.create(store, "study", settings(method=method), FakeSpace())
        evaluator = Told()
        run(study, evaluator)
    assert len(evaluator.expected) == len(evaluator.given) + 1  # the baseline
    right = [a == b for a, b in zip(evaluator.expected, evaluator.given, strict=False)]
    assert sum(right) >= len(right) - 1
    assert evaluator.expected[-1] is None


def test_a_method_that_learns_says_nothing():
    with Store.open("sqlite://") as store:
        study = Study.create(store, "study", settings(method="uniform"), FakeSpace())
        study._method.foresees = False
        evaluator = Told()
        run(study, evaluator)
    assert set(evaluator.expected) == {None}
