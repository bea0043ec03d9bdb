"""The process that forks one child for each evaluation and watches it.

    search  <-- socket -->  fork server  -- fork -->  child: evaluates, answers, ends
                                  ^  <-- pipe: events, answer
                                  |  <-- pipe: what it prints
                                  +--- time, memory, end of the search
                                  +---- fork -->  child: compiles for the next evaluation (ahead.py)

It imports torch and loads network and data once, so that a child starts within milliseconds and
shares their memory. It has one thread, and runs nothing in torch that could start more: a child of
a process with threads may find locks that nobody holds any more. It never touches an accelerator.
When the search ends in any way, its end of the socket closes and the child is killed. While an
evaluation runs, the search hears from the server every second (server_process.py).

Messages on the socket and from the child are those of framing.py.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import math
import os
import pickle
import resource
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syno._util.errors import UserError
from syno.network.models.extras import load_extra
from syno.runs import framing, processes
from syno.study.evaluate import ahead

if TYPE_CHECKING:
    from syno.store import Outcome
    from syno.study.evaluate.protocol import Evaluator, RungEvaluator

EVENT = b"e"  # (name of the observer's method, arguments)
ANSWER = b"a"  # (OUTCOME | MISTAKE | FAULT, content)
END = b"x"  # Ended
READY = b"r"  # Ready
BROKEN = b"b"  # (text, whether it is a mistake of the user's)
REQUEST = b"q"  # Request
SETUP = b"s"  # Setup
PULSE = b"p"  # nothing: the server is alive while an evaluation takes its time

OUTCOME = "outcome"
MISTAKE = "mistake"
FAULT = "fault"

# Why a child was killed.
TIME = "time"
MEMORY = "memory"
GARBAGE = "garbage"
STOPPED = "stopped"

# Bytes of output that are kept, and that an answer may have.
TAIL = 4096
MOST_ANSWER = 64 << 20
_CHUNK = 1 << 16
_WATCH_S = 0.05  # how often memory is looked at
_LEAVE_S = 2.0  # for a child to end after its answer
_END_S = 60.0  # for a child to end after it was killed: freeing much memory takes its time
_PULSE_S = 1.0  # how often the search hears from here, and stopped processes are looked for
# What a wait may count at most: a server that was suspended itself saw nothing of that time.
_MOST_TICK_S = 1.0
# Drivers of accelerators reserve far more than they use: there the watch alone limits memory.
_NVIDIA = "/dev/nvidiactl"
# torch imports its compiler with the first optimizer and with the first network that is traced,
# which would cost each child a second each.
_PRELOADED = (
    "torch",
    "torch._dynamo",
    "torch._functorch.partitioners",
    "torch.export._trace",
    "syno.study.evaluate.evaluator",
    "syno.codegen.emitters.pytorch",
)


@dataclass(frozen=True)
class Setup:
    """What the server needs before it can load anything.

    environment: that children get; threads: of torch in children, until the evaluator says
    otherwise; extras: packages that the factory needs, as `load_extra` names them; factory: pickled
    `() -> Evaluator`.
    """

    environment: dict[str, str]
    threads: int
    extras: tuple[str, ...]
    factory: bytes


@dataclass(frozen=True)
class Ready:
    """The server can evaluate: `failure` is an outcome to be completed when a child gives none,
    with a ladder `failures` is one for each rung; `threads` should be 1; `held` are bytes that each
    child begins with."""

    failure: Outcome | None
    threads: int
    held: int
    failures: tuple[Outcome, ...] = ()


@dataclass(frozen=True)
class Request:
    """One evaluation: `operator` is pickled, None for the baseline. Limits may be None; so is
    `rung` without a ladder. stopped_s: how long a process of it may be stopped (SIGSTOP).
    seed: of a repetition of a training; None for the first one. ahead: pickled, the operator that
    is probably evaluated next."""

    operator: bytes | None
    seconds: float | None
    memory: int | None
    rung: int | None = None
    stopped_s: float = math.inf
    seed: int | None = None
    ahead: bytes | None = None


@dataclass
class Ended:
    """How an evaluation ended.

    answer: what the child said; killed: why it was killed, if it was; status: as waitpid gave it;
    peak: greatest memory seen, in bytes; output: the end of what it printed; printed: bytes of all;
    left: whether something of it could not be killed.
    """

    answer: bytes | None = None
    killed: str | None = None
    status: int = 0
    peak: int = 0
    output: str = ""
    printed: int = 0
    left: bool = False


class _Relay:
    """Stands for the observer in a child: every call is sent to the search.

    A measurement begins when nothing is compiled any more.
    """

    def __init__(self, end: int, quiet: int | None = None) -> None:
        self._end = end
        self._quiet = quiet

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("on_"):
            raise AttributeError(name)

        def send(*arguments: object) -> None:
            framing.write(self._end, EVENT, pickle.dumps((name, arguments)))
            if (name, arguments) == ("on_step", ("measure",)):
                ahead.wait(self._quiet)

        return send


class _Server:
    def __init__(
        self, search: socket.socket, setup: Setup, evaluator: Evaluator | RungEvaluator
    ) -> None:
        self._search = search
        self._setup = setup
        self._evaluator = evaluator
        self._self = os.getpid()
        self._ahead = ahead.Ahead()

    def serve(self) -> None:
        """Answers requests until the search goes."""
        with self._ahead:
            while True:
                try:
                    what, content = framing.read(self._search)
                except (EOFError, ConnectionError):
                    return
                assert what == REQUEST
                ended = self._evaluate(pickle.loads(content))
                if ended is None:
                    return
                framing.write(self._search, END, pickle.dumps(ended))

    def _evaluate(self, request: Request) -> Ended | None:
        """Runs one child to its end; None when the search went away meanwhile."""
        self._ahead.finish()
        quiet = self._compile_ahead(request)
        answers, to_answers = os.pipe()
        prints, to_prints = os.pipe()
        child = os.fork()
        if child == 0:
            self._search.close()
            os.close(answers)
            os.close(prints)
            relay = _Relay(to_answers, quiet)
            _run_child(
                self._self, self._setup, self._evaluator, request, relay, to_answers, to_prints
            )
        os.close(to_answers)
        os.close(to_prints)
        if quiet is not None:
            os.close(quiet)
        with contextlib.suppress(ConnectionError):  # the watch sees that the search has gone
            framing.write(self._search, EVENT, pickle.dumps(("on_process", (child,))))
        try:
            watch = _Watch(self._search, child, answers, prints, request, self._ahead)
            return watch.until_the_end()
        finally:
            os.close(answers)
            os.close(prints)

    def _compile_ahead(self, request: Request) -> int | None:
        """Start the compilation for the next evaluation; what `ahead.wait` takes."""
        compiles = getattr(self._evaluator, "compile_ahead", None)
        if request.ahead is None or compiles is None:
            return None
        operator = request.ahead

        def run() -> None:
            self._search.close()
            _become_child(self._self, self._setup, request, os.open(os.devnull, os.O_WRONLY))
            compiles(pickle.loads(operator))

        return self._ahead.start(run)


class _Watch:
    """One child from its fork to its end.

    1. until_the_end   waits for messages, prints, time, memory, the search
    2. _take           reads what there is
    3. _finish         kills the group and all that is left, and gathers the rest
    """

    def __init__(
        self,
        search: socket.socket,
        child: int,
        answers: int,
        prints: int,
        request: Request,
        beside: ahead.Ahead,
    ) -> None:
        self._search, self._child, self._request = search, child, request
        self._beside = beside
        self._prints = prints
        self._open = {answers, prints}
        self._frames = framing.Frames((EVENT, ANSWER), MOST_ANSWER)
        self._tail = bytearray()
        self._ended = Ended()
        self._server = os.getpid()
        self._last = self._pulsed = time.monotonic()
        self._seconds = 0.0  # that the evaluation took, as far as this process saw it
        self._is_stopped = False  # a process of it, when that was looked at last
        self._stopped = 0.0  # seconds that it is
        for end in self._open:
            os.set_blocking(end, False)

    def until_the_end(self) -> Ended | None:
        """How the child ended; None when the search has gone."""
        answered = None
        poll = select.poll()
        poll.register(self._search, select.POLLIN)
        for end in self._open:
            poll.register(end, select.POLLIN)
        while True:
            ready = {end for end, _ in poll.poll(1000 * _WATCH_S)}
            if self._search.fileno() in ready:  # nothing is sent meanwhile: it has gone
                self._finish()
                return None
            for end in ready & self._open:
                self._take(end)
                if end not in self._open:
                    poll.unregister(end)
            self._tick()
            if answered is None and self._ended.answer is not None:
                answered = self._seconds
            if self._has_ended():
                break
            if answered is not None and self._seconds - answered > _LEAVE_S:
                break
            if answered is None and (why := self._broken_limit()):
                self._ended.killed = why
                break
            if self._ended.killed:
                break
        self._finish()
        return self._ended

    def _has_ended(self) -> bool:
        """Whether the child ended; it stays a zombie, so that its number is not given away."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._child, flags) is not None

    def _tick(self) -> None:
        """Counts the time since the last call, and tells the search now and then that this process
        is alive."""
        now = time.monotonic()
        passed = min(now - self._last, _MOST_TICK_S)
        self._last = now
        self._seconds += passed
        self._stopped = self._stopped + passed if self._is_stopped else 0.0
        if now - self._pulsed < _PULSE_S:
            return
        self._pulsed = now
        below = processes.descendants(self._server, self._beside.child)
        self._is_stopped = any(processes.activity(each).is_stopped for each in below)
        # A search that does not read at the moment needs none, and the next poll says when it has
        # gone. So short a message is never cut.
        with contextlib.suppress(BlockingIOError, ConnectionError):
            self._search.send(framing.packed(PULSE), socket.MSG_DONTWAIT)

    def _broken_limit(self) -> str | None:
        limit = self._request.memory
        below = processes.descendants(self._server, self._beside.child)
        held = processes.memory(below, limit or sys.maxsize)
        self._ended.peak = max(self._ended.peak, held)
        if limit is not None and held > limit:
            return MEMORY
        if self._request.seconds is not None and self._seconds > self._request.seconds:
            return TIME
        return STOPPED if self._stopped > self._request.stopped_s else None

    def _wait(self) -> bool:
        """Waits for the child that was killed; False when the system does not let go of it."""
        end = self._seconds + _END_S
        while True:
            process, status = os.waitpid(self._child, os.WNOHANG)
            if process:
                self._ended.status = status
                return True
            if self._seconds > end:
                self._ended.status = int(signal.SIGKILL)
                return False
            time.sleep(0.001)
            self._tick()

    def _take(self, end: int) -> bool:
        """Reads some of what there is; False when there is no more, now or ever."""
        try:
            data = os.read(end, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._open.discard(end)
        elif end == self._prints:
            self._ended.printed += len(data)
            self._tail += data
            del self._tail[:-TAIL]
        else:
            self._receive(data)
        return bool(data)

    def _receive(self, data: bytes) -> None:
        try:
            for what, content in self._frames.add(data):
                if what == ANSWER:
                    self._ended.answer = content
                else:
                    # Where the search has gone, the next poll says so.
                    with contextlib.suppress(ConnectionError):
                        framing.write(self._search, EVENT, content)
        except framing.GarbledError:
            self._ended.killed = GARBAGE

    def _finish(self) -> None:
        processes.kill_group(self._child)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        has_ended = self._wait()
        self._ended.left = not processes.clear(self._server, self._beside.child) or not has_ended
        for end in tuple(self._open):  # what was written before the end: nobody writes any more
            for _ in range(MOST_ANSWER // _CHUNK):
                if not self._take(end):
                    break
        self._ended.output = self._tail.decode(errors="replace")


def _run_child(
    server: int,
    setup: Setup,
    evaluator: Any,
    request: Request,
    relay: _Relay,
    answers: int,
    prints: int,
) -> None:
    """The child, from fork to `_exit`: nothing of the server's code runs after it."""
    try:
        _become_child(server, setup, request, prints)
        evaluator.observer = relay
        answer = _answer(evaluator, request)
        framing.write(answers, ANSWER, answer)
    except BaseException:
        with contextlib.suppress(BaseException):
            traceback.print_exc()
            sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def _become_child(server: int, setup: Setup, request: Request, prints: int) -> None:
    os.dup2(prints, 1)
    os.dup2(prints, 2)
    os.close(prints)
    os.setsid()  # a group of its own, without a terminal
    processes.die_with(server)
    faulthandler.enable(file=2)  # where a crash was goes to what is printed
    os.environ.clear()
    os.environ.update(setup.environment)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    processes.prefer_in_shortage()
    import torch

    if request.memory is not None and not os.path.exists(_NVIDIA):
        processes.limit_allocations(request.memory)
    torch.set_num_threads(setup.threads)
    _look_for_gpus_again()


def _look_for_gpus_again() -> None:
    """Let torch forget what it found in the server, which sees no GPU."""
    remembered = sys.modules.get("torch.utils._triton")
    for value in () if remembered is None else vars(remembered).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def _answer(evaluator: Evaluator | RungEvaluator, request: Request) -> bytes:
    """The outcome, or what was raised in its place, so that it can always be sent."""
    try:
        rung = () if request.rung is None else (request.rung,)
        if request.operator is None:
            outcome = evaluator.baseline(*rung)
        elif request.seed is not None:
            operator = pickle.loads(request.operator)
            outcome = evaluator.repeat(operator, request.seed, *rung)
        else:
            outcome = evaluator.evaluate(pickle.loads(request.operator), *rung)
        return pickle.dumps((OUTCOME, outcome))
    except UserError as error:
        return pickle.dumps((MISTAKE, str(error)))
    except BaseException as error:  # SystemExit of an operator's code is no answer either
        first = str(error).strip().partition("\n")[0]
        text = f"{type(error).__name__}: {first}" if first else type(error).__name__
        return pickle.dumps((FAULT, (text, traceback.format_exc(limit=-8))))


def main() -> None:
    """Serves the search at the other end of the socket whose descriptor is the argument."""
    search = socket.socket(fileno=int(sys.argv[1]))
    processes.wake_when_the_parent_ends()
    _, content = framing.read(search)
    try:
        setup: Setup = pickle.loads(content)
        processes.adopt_orphans()
        for name in _PRELOADED:
            importlib.import_module(name)
        for name in setup.extras:
            load_extra(name, "the network")
        evaluator = pickle.loads(setup.factory)()
        failure = getattr(evaluator, "failure", lambda: None)()
        failures = tuple(getattr(evaluator, "failures", tuple)())
        gc.collect()
        gc.freeze()  # children share these objects: the collector must not write into them
        me = os.getpid()
        held = processes.memory([me], sys.maxsize)
        ready = Ready(failure, processes.threads(me), held, failures)
    except BaseException as error:
        mistake = isinstance(error, UserError)
        text = str(error) if mistake else traceback.format_exc(limit=-6)
        framing.write(search, BROKEN, pickle.dumps((text, mistake)))
        return
    framing.write(search, READY, pickle.dumps(ready))
    try:
        _Server(search, setup, evaluator).serve()
    finally:
        gc.unfreeze()  # Python frees no frozen object as it ends: extensions report those as leaks
