"""Evaluation in separate processes: a crash, a hang or an excess of memory fails one trial only.

    with IsolatedEvaluator(functools.partial(make_evaluator, ...)) as evaluator:
        run(study, evaluator)

`make_evaluator()` runs once, in the process that forks (fork_server.py). The evaluator that it
returns runs in children of that process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import pickle
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from syno._util.errors import InternalError, UserError
from syno._util.threads import usable_cores
from syno.operators.operator import Operator
from syno.runs import processes
from syno.runs.supervise import Policy, Restarts
from syno.store import Outcome
from syno.store.documents import Details
from syno.store.records import ERROR, TIMEOUT
from syno.study.evaluate import fork_server, server_process
from syno.study.evaluate.failures import CRASH, HANG, OUT_OF_MEMORY
from syno.study.evaluate.fork_server import Ended, Ready, Request, Setup
from syno.study.evaluate.observer import EvaluationObserver
from syno.study.evaluate.protocol import Evaluator, RungEvaluator
from syno.study.evaluate.server_process import (
    EndedError,
    GarbledReplyError,
    ServerProcess,
    SilentError,
)

# Seconds that an evaluation may take in addition to its training.
GRACE_S = 30.0
# Replaces an infinite `max_slowdown`.
_SLOWDOWN = 10.0
# The least memory of a child, beside the memory that it shares with the others.
_LEAST_MEMORY = 64 << 20
# How many times the process that forks is started if it ends or stops at its start.
_POLICY = Policy(most=3)


class NotPossibleError(UserError):
    """Evaluations cannot be isolated on this machine, or not with this network."""


class IsolatedEvaluator:
    """An evaluator that evaluates in a separate process group, with limits of time and memory.

    If a child fails, its outcome has details["failure"], which is `crash`, `hang` or
    `out_of_memory`, and the end of the output of the child. A UserError of the evaluator is raised
    here. An exception such as Ctrl-C kills the child at once. If the process that forks does not
    respond, that process and the child are killed (server_process.py).

    Args:
        factory: makes the evaluator; it is pickled.
        deadline_s: wall-clock limit of a training in seconds. An evaluation may take twice as long
            and `GRACE_S` more. If None, the limit is 2 * `max_slowdown` times the time of the
            baseline, and `GRACE_S` more.
        max_slowdown: see deadline_s.
        memory_limit: bytes that an evaluation may use, without memory-mapped files; by default
            three quarters of the memory of the machine.
        baseline_s: seconds of the baseline, if known from an earlier run; with a ladder, by rung.
        extras: packages such as torchvision that the factory needs: see
            `syno.network.models.extras`.
        observer: is called with the steps of evaluations.

    Raises:
        NotPossibleError: if the system is not Linux, or the factory cannot be pickled.
    """

    is_isolated = True  # see `run`

    def __init__(
        self,
        factory: Callable[[], Evaluator | RungEvaluator],
        *,
        deadline_s: float | None = None,
        max_slowdown: float = math.inf,
        memory_limit: int | None = None,
        baseline_s: float | Mapping[int, float] | None = None,
        extras: Sequence[str] = (),
        observer: EvaluationObserver | None = None,
    ) -> None:
        if not processes.is_supported():
            raise NotPossibleError(
                "evaluations cannot be isolated on this system: that needs Linux\n"
                "  what to do: omit `isolate` (--isolate)"
            )
        self._factory = packed(factory)
        self._extras = tuple(extras)
        self._deadline_s = deadline_s
        self._slowdown = max_slowdown if math.isfinite(max_slowdown) else _SLOWDOWN
        self._memory = memory_limit or processes.default_memory_limit()
        given = baseline_s if isinstance(baseline_s, Mapping) else {0: baseline_s}
        self._baseline_s = {r: s for r, s in given.items() if s is not None}
        self._observer = observer or EvaluationObserver()
        self._child: int | None = None
        self._server: ServerProcess | None = None
        self._rung: int | None = None  # of the evaluation that runs
        self._ahead: bytes | None = None  # the operator that was announced
        self.ready: Ready | None = None

    def start(self) -> None:
        """Start the process that forks, unless it runs.

        Raises:
            NotPossibleError: if the network cannot be sent to the process.
            UserError: if the memory limit is too small.
        """
        self._started()

    def __enter__(self) -> IsolatedEvaluator:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, including a running evaluation."""
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def terminate(self) -> None:
        """Send SIGTERM to the running evaluation. An evaluation with a checkpoint pauses."""
        if self._child is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGTERM)

    def announce(self, operator: Operator | None) -> None:
        """Name the operator that is probably evaluated after the next one.

        What is compiled for it is compiled beside that evaluation, unless there is one processor.
        """
        alone = usable_cores() < 2
        self._ahead = None if operator is None or alone else pickle.dumps(operator)

    def baseline(self, rung: int | None = None) -> Outcome:
        """Evaluate the original network: see Evaluator and RungEvaluator."""
        began = time.perf_counter()
        limit = self._limit(rung) if self._deadline_s is not None else None
        outcome = self._run(None, limit, rung)
        self._baseline_s[rung or 0] = time.perf_counter() - began
        return outcome

    def evaluate(self, operator: Operator, rung: int | None = None) -> Outcome:
        """Evaluate an operator: see Evaluator and RungEvaluator."""
        outcome = self._run(pickle.dumps(operator), self._limit(rung), rung)
        if "failure" in outcome.details and not outcome.primitives:
            outcome = dataclasses.replace(outcome, primitives=operator.primitives())
        return outcome

    def repeat(self, operator: Operator, seed: int, rung: int | None = None) -> Outcome:
        """Train with another seed: see Evaluator and RungEvaluator."""
        return self._run(pickle.dumps(operator), self._limit(rung), rung, seed)

    def _limit(self, rung: int | None = None) -> float | None:
        """Return the seconds that an evaluation may take; None before the baseline is evaluated."""
        if self._deadline_s is not None:
            return 2 * self._deadline_s + GRACE_S
        if (rung or 0) not in self._baseline_s:
            return None
        # The baseline may have continued from lower rungs, while this operator starts over.
        taken = sum(s for below, s in self._baseline_s.items() if below <= (rung or 0))
        return 2 * self._slowdown * taken + GRACE_S

    def _run(
        self,
        operator: bytes | None,
        seconds: float | None,
        rung: int | None,
        seed: int | None = None,
    ) -> Outcome:
        began = time.perf_counter()
        self._rung = rung
        step = ""
        server = self._started()
        try:
            limit = server_process.SILENCE_S
            ahead, self._ahead = self._ahead, None
            request = Request(operator, seconds, self._memory, rung, limit, seed, ahead)
            server.request(pickle.dumps(request))
            answers = server.replies(seconds)
            while True:
                what, content = answers.next()
                if what == fork_server.END:
                    break
                step = self._event(content) or step
        except EndedError:
            self._server = None
            reason = f"the process that forks evaluations ended ({server.ended(self._child)})"
            return self._failed(CRASH, reason, began, Ended())
        except SilentError as error:
            reason = f"the process that forks evaluations {error}"
            return self._failed(HANG, reason, began, Ended(left=not self._kill(server)))
        except GarbledReplyError as error:
            reason = f"what the process that forks evaluations sends cannot be read ({error})"
            return self._failed(CRASH, reason, began, Ended(left=not self._kill(server)))
        except BaseException:
            self.close()  # the child must not continue after an interruption
            raise
        finally:
            self._child = None
        return self._outcome(pickle.loads(content), began, seconds, step)

    def _kill(self, server: ServerProcess) -> bool:
        self._server = None
        return server.kill()

    def _failure(self) -> Outcome:
        """Return the outcome of an evaluation without a result."""
        assert self.ready is not None
        if self._rung is not None and self.ready.failures:
            return self.ready.failures[self._rung]
        return self.ready.failure or Outcome(ERROR)

    def _event(self, content: bytes) -> str | None:
        """Call the observer; return the step, if the event is the start of a step.

        A child whose memory is corrupted may send anything, so invalid events are ignored.
        """
        try:
            name, arguments = pickle.loads(content)
            call = getattr(self._observer, name)
        except Exception:
            return None
        if name == "on_process" and self._child is None:  # the first is the server's
            self._child = arguments[0]
        call(*arguments)
        return str(arguments[0]) if name == "on_step" else None

    def _outcome(self, ended: Ended, began: float, seconds: float | None, step: str) -> Outcome:
        if ended.answer is not None:
            try:
                kind, found = pickle.loads(ended.answer)
            except Exception as error:
                reason = f"its result cannot be read ({type(error).__name__}: {error})"
                return self._failed(CRASH, reason, began, ended)
            if kind == fork_server.OUTCOME:
                if isinstance(found, Outcome):
                    return found
                kind, found = "", (f"it returned no outcome, but {type(found).__name__}", "")
            if kind == fork_server.MISTAKE:
                raise UserError(found)
            reason, trace = found
            failed = self._failed("", reason, began, ended)
            return dataclasses.replace(failed, details=failed.details | Details(traceback=trace))
        at = f" in step '{step}'" if step else ""
        if ended.killed == fork_server.MEMORY:
            reason = f"it used more than {_megabytes(self._memory)}{at}"
            return self._failed(OUT_OF_MEMORY, reason, began, ended)
        if ended.killed == fork_server.TIME:
            assert seconds is not None
            return self._failed(HANG, f"no result within {seconds:.0f} s{at}", began, ended)
        if ended.killed == fork_server.STOPPED:
            reason = (
                f"one of its processes was stopped (SIGSTOP) for {server_process.SILENCE_S:.0f} s"
            )
            return self._failed(HANG, f"{reason}{at}", began, ended)
        if ended.killed == fork_server.GARBAGE:
            return self._failed(CRASH, f"its result cannot be read{at}", began, ended)
        return self._failed(CRASH, f"{_end(ended.status)}{at}", began, ended)

    def _failed(self, kind: str, reason: str, began: float, ended: Ended) -> Outcome:
        """Make the outcome of an evaluation without a result."""
        details: Details = {"peak_bytes": ended.peak, "printed_bytes": ended.printed}
        if kind:
            details["failure"] = kind
        if ended.output:
            details["output"] = ended.output
        if ended.left:
            details["left"] = "one of its processes could not be killed"
        return dataclasses.replace(
            self._failure(),
            status=TIMEOUT if kind == HANG else ERROR,
            reason=f"{kind}: {reason}" if kind else reason,
            seconds=time.perf_counter() - began,
            details=details,
        )

    def _started(self) -> ServerProcess:
        """Return the process that forks, and start it if necessary.

        Raises:
            UserError: if the process ends or stops at its start several times.
        """
        restarts = Restarts(_POLICY)
        while self._server is None:
            reason = self._start()
            if reason and restarts.failed(0.0) is None:
                raise UserError(
                    f"the process that forks evaluations cannot be started: it {reason}, "
                    f"{_POLICY.most} times\n"
                    "  what to do: find out what ends or stops it (the system does when memory is "
                    "short), or search\n              without isolation (isolate=False, "
                    "--no-isolate)"
                )
        return self._server

    def _start(self) -> str:
        """Try once to start the process that forks; return why it failed, or an empty text."""
        import torch

        setup = Setup(dict(os.environ), torch.get_num_threads(), self._extras, self._factory)
        server = ServerProcess()
        try:
            what, content = server.start(setup)
        except EndedError:
            status = server.ended(None)
            if not status.startswith("signal"):
                raise InternalError(
                    f"the process that forks evaluations ended at its start ({status})"
                ) from None
            return f"ended at its start ({status})"
        except SilentError as error:
            server.kill()
            return str(error)
        except GarbledReplyError as error:
            server.kill()
            raise InternalError(f"the process that forks evaluations sends {error}") from error
        except BaseException:
            server.close()
            raise
        if what == fork_server.BROKEN:
            server.close()
            text, mistake = pickle.loads(content)
            raise UserError(text) if mistake else not_carried(text)
        self._server = server
        self.ready = pickle.loads(content)
        self._check_memory(self.ready)
        return ""

    def _check_memory(self, ready: Ready) -> None:
        least = ready.held + _LEAST_MEMORY
        if self._memory < least:
            self.close()
            raise UserError(
                f"memory_limit (--memory-limit) is {_megabytes(self._memory)}, too little for an "
                "evaluation\n"
                f"  expected: at least {_megabytes(least)}: a process with torch and the network "
                f"holds {_megabytes(ready.held)} before it starts"
            )


def packed(factory: Callable[[], Evaluator | RungEvaluator]) -> bytes:
    """Pickle the factory.

    Raises:
        NotPossibleError: if it cannot be pickled.
    """
    try:
        return pickle.dumps(factory)
    except Exception as error:
        raise not_carried(f"{type(error).__name__}: {error}") from error


def not_carried(text: str, what: str = "the network") -> NotPossibleError:
    """Make the error for `what` cannot be sent, with the last line of `text`."""
    return NotPossibleError(
        f"{what} cannot be sent to another process\n"
        f"  {text.strip().splitlines()[-1] if text.strip() else 'no reason is known'}\n"
        "  what to do: define its classes and functions in a module that can be imported (not in "
        "the script\n              itself, not inside a function), or search without isolation "
        "(isolate=False)"
    )


def _megabytes(count: int) -> str:
    return f"{count / (1 << 20):,.0f} MiB"


def _end(status: int) -> str:
    """Say how a process ended, from the status of waitpid."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"the process ended with exit code {code} and returned no result"
    more = ", as the system does when memory is short" if -code == signal.SIGKILL else ""
    return f"the process was ended by {processes.signal_name(-code)}{more}"
