"""The process that forks evaluations is stopped, killed or goes mad: the search never waits on."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from syno import UserError
from syno.runs import processes
from syno.study.evaluate import server_process
from syno.study.evaluate.failures import failure_kind
from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator
from syno.study.evaluate.server_process import ServerProcess
from syno.study.observer import StudyObserver

sys.path.insert(0, str(Path(__file__).parent))
import hostile  # the other process imports it by this name, too

pytestmark = pytest.mark.skipif(not processes.is_supported(), reason="needs Linux")

SILENCE_S = 3.0
# Without the compiler of torch, which the evaluations of these tests do not need.
QUICK = "quick_server"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def shared(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server_process, "_MODULE", QUICK)
        made = IsolatedEvaluator(functools.partial(hostile.make_patient, str(folder)))
        made.start()
    with made:
        yield made


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(server_process, "_MODULE", QUICK)


@pytest.fixture
def evaluator(shared, folder, monkeypatch):
    """After every test the next evaluation works."""
    monkeypatch.setattr(server_process, "SILENCE_S", SILENCE_S)
    (folder / "seconds").write_text("600")
    shared._deadline_s = None
    shared._baseline_s = {}
    shared.start()
    yield shared
    shared._observer = StudyObserver()
    assert shared.evaluate("fine").accuracy == 0.5


class Watch(StudyObserver):
    """Does something when an evaluation has begun."""

    def __init__(self, action) -> None:
        self._action = action

    def on_process(self, process):
        self._action(process)


def alive(pids, within: float = 60.0) -> list[int]:
    """Those that are still there after a while."""
    end = time.monotonic() + within
    while (left := [p for p in pids if not processes.activity(p).has_ended]) and (
        time.monotonic() < end
    ):
        time.sleep(0.01)
    return left


def all_below(evaluator) -> list[int]:
    return [evaluator._server.pid, *processes.descendants(evaluator._server.pid)]


def stopping(evaluator, seen, ready):
    """Stops the process that forks when `ready` says so, and notes all that runs."""

    def act(_: int) -> None:
        def stop() -> None:
            while not ready():
                time.sleep(0.01)
            os.kill(evaluator._server.pid, signal.SIGSTOP)
            seen.extend(all_below(evaluator))

        threading.Thread(target=stop).start()

    return Watch(act)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["baseline", "hang", "orphan_and_hang"])
def test_a_stopped_server_is_a_hang_whether_the_evaluation_has_a_limit_or_not(
    evaluator, folder, what
):
    (folder / "pids").unlink(missing_ok=True)
    seen: list[int] = []
    orphan = folder / "pids"
    ready = orphan.exists if what == "orphan_and_hang" else lambda: True
    evaluator._observer = stopping(evaluator, seen, ready)
    if what == "baseline":
        outcome = evaluator.baseline()
    else:
        evaluator._deadline_s = 3600.0
        outcome = evaluator.evaluate(hostile.HostileOperator(what))
    assert outcome.status == "timeout"
    assert outcome.reason == ("hang: the process that forks evaluations did not respond for 3 s")
    assert failure_kind(outcome) == "hang"
    assert "left" not in outcome.details
    assert len(seen) >= (3 if what == "orphan_and_hang" else 2)
    assert alive(seen) == []


@pytest.mark.slow
def test_a_long_healthy_baseline_is_not_killed(evaluator, folder):
    (folder / "seconds").write_text(str(2 * SILENCE_S))
    assert evaluator.baseline().accuracy == 0.9


@pytest.mark.slow
def test_a_search_that_was_suspended_itself_hears_what_arrived_meanwhile(evaluator, folder):
    (folder / "seconds").write_text(str(0.5 * SILENCE_S))
    evaluator._observer = Watch(lambda _: time.sleep(2 * SILENCE_S))
    assert evaluator.baseline().accuracy == 0.9


@pytest.mark.slow
def test_a_server_that_was_suspended_with_its_evaluation_goes_on(evaluator, monkeypatch):
    """As when a batch system suspends the whole job: that time counts against nobody."""
    monkeypatch.setattr("syno.study.evaluate.isolated_evaluator.GRACE_S", 3.0)
    monkeypatch.setattr(server_process, "SILENCE_S", 60.0)
    evaluator._deadline_s = 0.0
    pids: list[int] = []

    def suspend(_: int) -> None:
        pids.extend(all_below(evaluator))
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(4.0)  # longer than the evaluation may take
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    evaluator._observer = Watch(suspend)
    assert evaluator.evaluate("eat:100").accuracy == 0.5


def test_a_stopped_evaluation_without_a_limit_is_a_hang(evaluator):
    evaluator._observer = Watch(lambda child: os.kill(child, signal.SIGSTOP))
    outcome = evaluator.baseline()
    assert outcome.reason.startswith("hang: one of its processes was stopped (SIGSTOP) for 3 s")
    assert outcome.status == "timeout"


def test_a_server_that_does_not_keep_the_limit_is_ended(evaluator, monkeypatch):
    monkeypatch.setattr("syno.study.evaluate.isolated_evaluator.GRACE_S", 0.5)
    monkeypatch.setattr(server_process, "SLACK_S", 0.5)
    monkeypatch.setattr(evaluator, "_deadline_s", 0.0)
    # It answers to its pulse, but not to its limit.
    request = functools.partial(server_process.fork_server.Request, memory=None)
    monkeypatch.setattr(
        "syno.study.evaluate.isolated_evaluator.Request",
        lambda operator, *_: request(operator, seconds=None),
    )
    outcome = evaluator.evaluate(hostile.HostileOperator("hang"))
    assert outcome.reason == ("hang: the process that forks evaluations did not end within 1 s")
    monkeypatch.undo()


@pytest.mark.slow
def test_an_interruption_ends_a_stopped_server_at_once(evaluator, monkeypatch):
    monkeypatch.setattr(server_process, "SILENCE_S", 3600.0)  # nothing else ends it
    seen: list[int] = []

    def act(_: int) -> None:
        seen.extend(all_below(evaluator))
        os.kill(evaluator._server.pid, signal.SIGSTOP)
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    evaluator._observer = Watch(act)
    with pytest.raises(KeyboardInterrupt):
        evaluator.baseline()
    monkeypatch.setattr(server_process, "SILENCE_S", SILENCE_S)
    assert alive(seen) == []


@pytest.mark.slow
def test_a_second_interruption_leaves_nothing_behind(evaluator, monkeypatch):
    seen: list[int] = []

    def interrupted_again(self, *_: object) -> None:
        raise KeyboardInterrupt

    def act(_: int) -> None:
        seen.extend(all_below(evaluator))
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    evaluator._observer = Watch(act)
    with monkeypatch.context() as patch:
        patch.setattr(evaluator._server._process, "wait", interrupted_again)
        patch.setattr(ServerProcess, "kill", kill_without_wait)
        with pytest.raises(KeyboardInterrupt):
            evaluator.baseline()
    assert alive(seen) == []


def kill_without_wait(server: ServerProcess) -> bool:
    return processes.kill_tree(server.pid)


def test_a_search_that_is_killed_takes_a_stopped_server_along(folder, tmp_path):
    script = (
        "import functools, os, signal, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import hostile\n"
        "from syno.runs import processes\n"
        "from syno.study.evaluate import server_process\n"
        "from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator\n"
        "from syno.study.observer import StudyObserver\n"
        f"server_process._MODULE = {QUICK!r}\n"
        "class Watch(StudyObserver):\n"
        "    def on_process(self, process):\n"
        "        os.kill(made._server.pid, signal.SIGSTOP)\n"
        "        print(made._server.pid, process, flush=True)\n"
        f"factory = functools.partial(hostile.make_patient, {str(folder)!r})\n"
        "made = IsolatedEvaluator(factory, observer=Watch())\n"
        "made.baseline()\n"
    )
    (folder / "seconds").write_text("600")
    search = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    with search:
        pids = [int(pid) for pid in search.stdout.readline().split()]
        assert len(pids) == 2
        search.kill()
    assert alive(pids) == []


def start_instead(monkeypatch, folder, code):
    """Lets `main()` of a module with this code be the process that forks evaluations."""
    (folder / "fake_server.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(server_process, "_MODULE", "fake_server")


FAKE = {
    "half a message": "s.send(b'r' + bytes([200, 1, 0, 0, 0, 0, 0, 0]) + b'only so much')",
    "stopped": "os.kill(os.getpid(), signal.SIGSTOP)",
    "deaf": "pass",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", FAKE)
def test_a_start_that_does_nothing_is_given_up(what, folder, tmp_path, monkeypatch):
    """`deaf` reads nothing: the socket is full before all of the network went through it."""
    code = (
        "import os, signal, socket, sys, time\n"
        "def main():\n"
        f"    s = socket.socket(fileno=int(sys.argv[1])); {FAKE[what]}; time.sleep(600)\n"
    )
    start_instead(monkeypatch, tmp_path, code)
    monkeypatch.setattr(server_process, "SILENCE_S", 0.6)
    monkeypatch.setattr(server_process, "IDLE_START_S", 0.6 if what != "stopped" else 60.0)
    factory = functools.partial(hostile.make, str(folder) + "x" * (4 << 20))
    with pytest.raises(UserError, match="cannot be started: it ") as caught:
        IsolatedEvaluator(factory).start()
    why = "was stopped (SIGSTOP) for 1 s" if what == "stopped" else "did not respond for 1 s"
    assert f"it {why} at its start, 3 times" in str(caught.value)
    assert "--no-isolate" in str(caught.value)


def test_a_server_that_is_killed_at_its_start_is_started_again(folder, tmp_path, monkeypatch):
    note = tmp_path / "note"
    code = (
        "import os, signal\n"
        f"from {QUICK} import main\n"
        f"if not os.path.exists({str(note)!r}):\n"
        f"    open({str(note)!r}, 'w').close(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    start_instead(monkeypatch, tmp_path, code)
    with IsolatedEvaluator(functools.partial(hostile.make, str(folder))) as made:
        assert note.exists()
        assert made.evaluate("fine").accuracy == 0.5


def test_what_is_no_message_is_a_crash(evaluator, monkeypatch):
    def garbled(self, wait):
        raise server_process.GarbledReplyError("b'?' of 7 bytes")

    with monkeypatch.context() as patch:
        patch.setattr(ServerProcess, "_receive", garbled)
        outcome = evaluator.evaluate(hostile.HostileOperator("fine"))
    assert outcome.reason == (
        "crash: what the process that forks evaluations sends cannot be read (b'?' of 7 bytes)"
    )
