"""The process that forks evaluations (fork_server.py), as the search sees it.

It may die, be stopped (SIGSTOP), or hang, at any moment, also in the middle of a message. So no
wait here is without an end:

    start        stopped for SILENCE_S, without progress for IDLE_START_S, or not done in START_S
    evaluation   nothing heard for SILENCE_S: it sends a pulse every second
                 no end SLACK_S after the time limit of the evaluation, which it should keep itself

Waiting is counted only while the search itself runs: a search that was suspended reads first what
has arrived meanwhile.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import socket
import subprocess
import time

from syno.runs import framing, helper_process, processes
from syno.study.evaluate import fork_server
from syno.study.evaluate.fork_server import MOST_ANSWER, PULSE, Setup

# For how long nothing may be heard of a process that should say something every second.
SILENCE_S = 60.0
# What an evaluation may take beyond its limit until the search ends it: freeing memory takes time.
SLACK_S = 60.0
# A start reads the network and the data, which may be large: it may take long, but not do nothing.
IDLE_START_S = 300.0
START_S = 3600.0
_CLOSE_S = 10.0
_MOST_TICK_S = 1.0
# An answer of the greatest size, and what the server says about it.
_MOST_MESSAGE = MOST_ANSWER + (1 << 20)
# Its `main()` is what the process runs.
_MODULE = "syno.study.evaluate.fork_server"
# Libraries must start no threads in the process that forks.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# A child of a process that has used a GPU, if only to count them, cannot use one. Therefore torch
# finds none in the process that forks, and asks NVML instead of the driver. Children get the
# environment of the search.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}


class LostProcessError(Exception):
    """The process can evaluate no more; `kill` it, or ask how it `ended`."""


class EndedError(LostProcessError):
    """It has ended."""


class SilentError(LostProcessError):
    """It gives no sign of life, or does not come to an end; the text says which."""


class GarbledReplyError(LostProcessError):
    """What it sends is no message; the text says what."""


class ServerProcess:
    """One such process, from its start to its end.

    `start`, `request` and `Replies.next` raise a LostProcessError when it ended, hangs, or sends
    what is no message.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                helper_process.command(_MODULE, str(theirs.fileno())),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # results are on standard output: nothing else may get there
                env=helper_process.environment(**_ONE_THREAD, **_NO_GPU),
                start_new_session=True,  # Ctrl-C reaches the search alone, which closes the socket
            )
        self._socket = ours

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def start(self, setup: Setup) -> tuple[bytes, bytes]:
        """What it says when it has loaded the network and the data: READY or BROKEN."""
        wait = _Wait(START_S, self._process.pid)
        self._send(fork_server.SETUP, pickle.dumps(setup), wait)
        return self._receive(wait)

    def request(self, content: bytes) -> None:
        """Asks for an evaluation."""
        self._send(fork_server.REQUEST, content, _Wait())

    def replies(self, seconds: float | None) -> Replies:
        """What it says about an evaluation with this time limit: call `next` until END."""
        return Replies(self, _Wait(math.inf if seconds is None else seconds + SLACK_S))

    def _send(self, what: bytes, content: bytes, wait: _Wait) -> None:
        try:
            framing.send(self._socket, what, content, heard=wait.heard, waited=wait.check)
        except ConnectionError as error:
            raise EndedError from error

    def _receive(self, wait: _Wait) -> tuple[bytes, bytes]:
        try:
            return framing.read(
                self._socket, most=_MOST_MESSAGE, heard=wait.heard, waited=wait.check
            )
        except (EOFError, ConnectionError) as error:
            raise EndedError from error
        except framing.GarbledError as error:
            raise GarbledReplyError(str(error)) from error

    def ended(self, group: int | None) -> str:
        """Waits for a process that closed its socket, and says how it ended. group: that of the
        evaluation that ran in it, which is killed."""
        try:
            self._socket.close()
            status = self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self._process.wait()
        except BaseException:
            self.kill()
            raise
        if group is not None:
            processes.kill_group(group)
        return f"signal {-status}" if status < 0 else f"exit code {status}"

    def close(self) -> None:
        """Ends the process, which ends its evaluation; one that does not is killed."""
        self._socket.close()
        end = time.monotonic() + _CLOSE_S
        try:
            while self._process.poll() is None:
                # What is stopped does not see that it should end.
                if time.monotonic() > end or processes.activity(self.pid).is_stopped:
                    self.kill()
                    return
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(0.05)
        except BaseException:  # interrupted once more
            self.kill()
            raise

    def kill(self) -> bool:
        """Kills it and all that it started; False when something of that could not be killed."""
        self._socket.close()
        gone = True
        if self._process.poll() is None:
            gone = processes.kill_tree(self.pid)
            self._process.wait()
        return gone


class Replies:
    """What the process says about one evaluation."""

    def __init__(self, server: ServerProcess, wait: _Wait) -> None:
        self._server, self._wait = server, wait

    def next(self) -> tuple[bytes, bytes]:
        """The next event, or the end."""
        while True:
            what, content = self._server._receive(self._wait)
            if what != PULSE:
                return what, content


class _Wait:
    """For how long the search waits. SilentError from `check` when that is over.

    most: seconds for all of it; starting: the process, where it starts and says nothing meanwhile.
    """

    def __init__(self, most: float = math.inf, starting: int | None = None) -> None:
        self._most = most
        self._starting = starting
        self._counters: tuple[str, ...] = ()
        self._all = self._silent = self._stopped = 0.0
        self._last = time.monotonic()

    def heard(self) -> None:
        """It showed that it is alive."""
        self._tick()
        self._silent = self._stopped = 0.0
        self._check_all()

    def check(self) -> None:
        """Looks whether to wait on."""
        passed = self._tick()
        limit, why = SILENCE_S, ""
        if self._starting is not None:
            activity = processes.activity(self._starting)
            self._stopped = self._stopped + passed if activity.is_stopped else 0.0
            if activity.counters != self._counters:
                self._counters, self._silent = activity.counters, 0.0
            limit, why = IDLE_START_S, " at its start"
            if self._stopped > SILENCE_S:
                raise SilentError(f"was stopped (SIGSTOP) for {SILENCE_S:.0f} s{why}")
        if self._silent > limit:
            raise SilentError(f"did not respond for {limit:.0f} s{why}")
        self._check_all()

    def _check_all(self) -> None:
        if self._all > self._most:
            raise SilentError(f"did not end within {self._most:.0f} s")

    def _tick(self) -> float:
        now = time.monotonic()
        passed = min(now - self._last, _MOST_TICK_S)
        self._last = now
        self._all += passed
        self._silent += passed
        return passed
