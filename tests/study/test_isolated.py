"""An evaluation in a process of its own: whatever it does is a value, and nothing of it stays."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from syno import UserError
from syno.runs import processes
from syno.study.evaluate import server_process
from syno.study.evaluate.failures import failure_kind
from syno.study.evaluate.isolated_evaluator import IsolatedEvaluator, NotPossibleError
from syno.study.observer import StudyObserver

sys.path.insert(0, str(Path(__file__).parent))
import hostile  # the other process imports it by this name, too

pytestmark = pytest.mark.skipif(not processes.is_supported(), reason="needs Linux")

MIB = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture(scope="module")
def evaluator(folder):
    """One for all tests: each shows that the others left it whole."""
    with IsolatedEvaluator(
        functools.partial(hostile.make, str(folder)), memory_limit=900 * MIB
    ) as made:
        yield made


@pytest.fixture(autouse=True)
def whole(request, evaluator, monkeypatch):
    """After every test nothing is left of what it ran, and the next evaluation works."""
    monkeypatch.setattr("syno.study.evaluate.isolated_evaluator.GRACE_S", 60.0)
    evaluator._deadline_s = 60.0
    yield
    if evaluator._server is not None:
        assert processes.descendants(evaluator._server.pid) == []
        assert processes.threads(evaluator._server.pid) == 1
    assert evaluator.evaluate("fine").accuracy == 0.5


class Watch(StudyObserver):
    """Does something when an evaluation has begun."""

    def __init__(self, action) -> None:
        self._action = action

    def on_process(self, process):
        self._action(process)


def hurry(evaluator, monkeypatch, seconds=0.6):
    monkeypatch.setattr("syno.study.evaluate.isolated_evaluator.GRACE_S", seconds)
    evaluator._deadline_s = 0.0


def test_an_evaluation_runs_in_a_process_of_its_own_that_another_one_forks(evaluator):
    evaluator.start()
    server = evaluator._server.pid
    first, second = (evaluator.evaluate("fine").details["pid"] for _ in range(2))
    assert len({first, second, os.getpid(), server}) == 4
    assert evaluator._server.pid == server  # it imports once


def test_the_process_that_forks_has_one_thread(evaluator):
    assert evaluator.ready.threads == 1


def test_the_baseline_is_evaluated_as_well(evaluator):
    assert evaluator.baseline().accuracy == 0.9


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("segfault", "crash: the process was ended by SIGSEGV in step 'train'"),
        ("signal:SIGABRT", "crash: the process was ended by SIGABRT in step 'train'"),
        ("signal:SIGFPE", "crash: the process was ended by SIGFPE in step 'train'"),
        (
            "signal:SIGKILL",
            "crash: the process was ended by SIGKILL, as the system does when memory is short in "
            "step 'train'",
        ),
        (
            "exit:0",
            "crash: the process ended with exit code 0 and returned no result in step 'train'",
        ),
        (
            "exit:3",
            "crash: the process ended with exit code 3 and returned no result in step 'train'",
        ),
        ("garbage", "crash: its result cannot be read in step 'train'"),
    ],
)
def test_a_crash_is_a_failure_with_its_reason(evaluator, what, reason):
    outcome = evaluator.evaluate(hostile.HostileOperator(what))
    assert (outcome.status, outcome.reason) == ("error", reason)
    assert failure_kind(outcome) == "crash"
    # What an answer would have said of itself, so that it is stored like one.
    assert (outcome.rung, outcome.recipe, outcome.seed) == ("fake", {"epochs": 1}, 5)
    assert outcome.primitives == {"reduce": 1}
    assert outcome.seconds > 0


def test_where_it_crashed_is_kept(evaluator):
    outcome = evaluator.evaluate(hostile.HostileOperator("segfault"))
    assert "Fatal Python error: Segmentation fault" in outcome.details["output"]
    assert "_segfault" in outcome.details["output"]


@pytest.mark.parametrize("what", ["hang", "hang_in_c", "stop", "orphan_and_hang"])
def test_a_hang_is_killed_whatever_it_ignores(evaluator, what, monkeypatch):
    hurry(evaluator, monkeypatch)
    outcome = evaluator.evaluate(hostile.HostileOperator(what))
    assert outcome.status == "timeout"
    assert outcome.reason.startswith("hang: no result within 1 s")
    assert failure_kind(outcome) == "hang"


@pytest.mark.parametrize("what", ["eat:20000", "eat_in_children:400"])
def test_memory_is_limited_for_all_its_processes_together(evaluator, what):
    outcome = evaluator.evaluate(hostile.HostileOperator(what))
    assert outcome.status == "error"
    assert failure_kind(outcome) == "out_of_memory", outcome
    assert outcome.details["peak_bytes"] < 1400 * MIB


def test_one_tensor_beyond_the_limit_is_refused_to_the_code_that_asked(evaluator):
    outcome = evaluator.evaluate(hostile.HostileOperator("eat_tensor:6000"))
    assert outcome.status == "error"
    assert "can't allocate memory: you tried to allocate 6291456000 bytes" in outcome.reason
    assert failure_kind(outcome) == "out_of_memory"


def test_what_is_below_the_limit_is_left_alone(evaluator):
    assert evaluator.evaluate("eat:200").accuracy == 0.5
    assert evaluator.evaluate("eat_tensor:200").status == "ok"


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("raise", "LocalError: cannot be pickled"),
        ("answer", "TypeError: cannot pickle '_thread.lock' object"),
        ("sys_exit:0", "SystemExit: 0"),
        ("nothing", "it returned no outcome, but int"),
    ],
)
def test_what_cannot_be_sent_is_a_failure_with_its_text(evaluator, what, reason):
    outcome = evaluator.evaluate(hostile.HostileOperator(what))
    assert (outcome.status, outcome.reason) == ("error", reason)
    assert failure_kind(outcome) is None  # it would do so every time


def test_a_mistake_of_the_user_is_raised_here(evaluator):
    with pytest.raises(UserError, match="the learning rate is purple\n  what to do"):
        evaluator.evaluate("mistake")


def test_nan_is_an_answer_like_others(evaluator):
    outcome = evaluator.evaluate("nan")
    assert outcome.accuracy != outcome.accuracy


def test_a_flood_of_output_is_counted_and_its_end_kept(evaluator):
    assert evaluator.evaluate("flood:16").accuracy == 0.5
    outcome = evaluator.evaluate(hostile.HostileOperator("flood_and_crash:16"))
    assert outcome.details["printed_bytes"] > 15 * MIB
    assert len(outcome.details["output"]) <= 4096
    assert "the last line" in outcome.details["output"]


def test_output_does_not_reach_the_results(evaluator, capfd):
    evaluator.evaluate("flood:1")
    assert capfd.readouterr().out == ""


def test_grandchildren_are_killed_and_zombies_waited_for(evaluator, folder):
    (folder / "pids").unlink(missing_ok=True)
    evaluator.evaluate("orphan")
    (orphan,) = map(int, (folder / "pids").read_text().split())
    with pytest.raises(ProcessLookupError):
        os.kill(orphan, 0)


def test_events_arrive_in_order_and_none_is_lost(evaluator, monkeypatch):
    seen = []

    class Watch(StudyObserver):
        def on_step(self, step):
            seen.append(step)

        def on_epoch(self, epoch, epochs, loss):
            seen.append(epoch)

    monkeypatch.setattr(evaluator, "_observer", Watch())
    evaluator.evaluate("events:3000")
    assert seen == ["train", *range(3000)]


def interrupt_main():
    os.kill(os.getpid(), signal.SIGINT)


def interrupt_elsewhere():
    """The system gave the signal to this thread: what the main one waits for is not cut short."""
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


@pytest.mark.parametrize(
    "interrupt", [interrupt_main, pytest.param(interrupt_elsewhere, marks=pytest.mark.slow)]
)
def test_an_interruption_ends_the_evaluation_at_once(evaluator, interrupt, monkeypatch):
    evaluator.start()
    server = evaluator._server.pid
    soon = Watch(lambda _: threading.Timer(0.1, interrupt).start())
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(evaluator, "_observer", soon)
        evaluator.evaluate("hang")
    with pytest.raises(ProcessLookupError):
        os.kill(server, 0)


def test_a_server_that_is_killed_is_a_failure_and_starts_again(evaluator, monkeypatch):
    evaluator.start()
    server = evaluator._server
    with monkeypatch.context() as patch:
        kill = Watch(lambda _: os.kill(server.pid, signal.SIGKILL))
        patch.setattr(evaluator, "_observer", kill)
        outcome = evaluator.evaluate(hostile.HostileOperator("hang"))
    assert outcome.reason == "crash: the process that forks evaluations ended (signal 9)"
    assert evaluator.evaluate("fine").accuracy == 0.5
    assert evaluator._server.pid != server.pid


def test_children_have_the_environment_and_threads_of_the_search(evaluator):
    import torch

    assert evaluator.evaluate("threads").details["threads"] == torch.get_num_threads()


@pytest.mark.slow
def test_the_process_that_forks_sees_no_gpu_and_its_children_see_those_of_the_search(
    folder, monkeypatch
):
    """A child of a process that has counted the GPUs cannot use one."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.delenv("PYTORCH_NVML_BASED_CUDA_CHECK", raising=False)
    with IsolatedEvaluator(functools.partial(hostile.make, str(folder))) as made:
        details = made.evaluate(hostile.HostileOperator("gpus")).details
    assert details == {"server": ["", "1"], "child": ["3", None]}


def test_what_cannot_go_to_another_process_is_refused_with_what_to_do(folder):
    with pytest.raises(NotPossibleError, match="cannot be sent to another process") as caught:
        IsolatedEvaluator(lambda: None)
    assert "isolate=False" in str(caught.value)


def test_an_evaluator_that_cannot_be_made_says_why(monkeypatch):
    monkeypatch.setattr(server_process, "_MODULE", "quick_server")  # without torch's compiler
    with pytest.raises(UserError, match=r"^there is no such data$"):
        IsolatedEvaluator(functools.partial(hostile.make_broken, "mistake")).start()
    with pytest.raises(NotPossibleError, match="ZeroDivisionError: the evaluator cannot be made"):
        IsolatedEvaluator(functools.partial(hostile.make_broken, "bug")).start()


@pytest.mark.slow
def test_a_memory_limit_below_what_torch_holds_is_refused(folder):
    with pytest.raises(UserError, match=r"memory_limit .* is 20 MiB, too little"):
        IsolatedEvaluator(
            functools.partial(hostile.make, str(folder)), memory_limit=20 * MIB
        ).start()


def test_the_time_limit_follows_the_baseline_when_none_is_given(folder):
    made = functools.partial(hostile.make, str(folder))
    isolated = IsolatedEvaluator(made, max_slowdown=4.0)
    assert isolated._limit() is None
    isolated = IsolatedEvaluator(made, max_slowdown=4.0, baseline_s=10.0)
    assert isolated._limit() == pytest.approx(2 * 4 * 10 + 60)  # GRACE_S as `whole` sets it
