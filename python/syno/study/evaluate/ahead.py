"""Compilation for the next evaluation, in a process beside the present one.

The process that forks evaluations starts it. It only fills the cache for compiled code: whatever
happens to it, the next evaluation compiles what is missing. Its memory and its end are no matter of
the evaluation beside it.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Callable

from syno.runs import processes

# Seconds after which it is given up: a compilation takes some, and one that hangs helps nobody.
MOST_S = 30.0
_NICE = 19
_LOOK_S = 0.005
_REAP_S = 1.0  # for a process to end that was killed


def wait(quiet: int | None) -> None:
    """Wait until a compilation is done, if there is one.

    Args:
        quiet: what `Ahead.start` returned.
    """
    if quiet is not None:
        select.select([quiet], [], [], MOST_S)


class Ahead:
    """The process that compiles, one at most. At the end of a block it is killed.

    child: its number; None if there is none.
    """

    def __init__(self) -> None:
        self.child: int | None = None
        self._began = 0.0

    def start(self, run: Callable[[], object]) -> int:
        """Fork a process that runs a function and ends.

        Returns:
            A file descriptor for `wait`, which the caller closes.
        """
        assert self.child is None
        quiet, running = os.pipe()  # nobody writes: what counts is who has it open
        self._began = time.monotonic()
        self.child = os.fork()
        if self.child == 0:
            status = 1
            with contextlib.suppress(BaseException):  # the next evaluation meets and reports it
                os.close(quiet)
                os.nice(_NICE)
                run()
                status = 0
            os._exit(status)
        os.close(running)
        return quiet

    def finish(self) -> None:
        """Wait for the process until `MOST_S` after its start, and then kill it."""
        while self.child is not None and not self._has_ended():
            if time.monotonic() > self._began + MOST_S:
                self.stop()
            time.sleep(_LOOK_S)
        self.child = None

    def stop(self) -> None:
        """Kill the process, if there is one."""
        if self.child is not None and not self._has_ended():
            processes.kill_tree(self.child)
            end = time.monotonic() + _REAP_S
            while not self._has_ended() and time.monotonic() < end:
                time.sleep(_LOOK_S)
        self.child = None

    def _has_ended(self) -> bool:
        assert self.child is not None
        try:
            return os.waitpid(self.child, os.WNOHANG)[0] != 0
        except ChildProcessError:  # it was waited for
            return True

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
