"""Who works on a proposal, and whether it still does.

A lease is the text `machine:process:start:number`. On the machine that took it, a lease is void as
soon as its process is gone (killed, power cut, restarted), in that process as soon as its worker is
closed. Elsewhere, and of a process that is stopped (SIGSTOP), only the heartbeat tells: a lease not
renewed for `EXPIRES_S` seconds is void.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import os
import platform
import uuid
from pathlib import Path
from typing import ClassVar

from syno.runs.processes import START, STATE, stat_fields
from syno.store.records import digest, utc_now

EXPIRES_S = 120.0
HEARTBEAT_S = 20.0


@functools.cache
def _machine() -> str:
    """A name for "this kernel since its start, this space of process ids", without a host name."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return digest(boot + os.readlink("/proc/self/ns/pid"))[:16]
    except OSError:  # not Linux
        return digest(f"{platform.node()} {uuid.getnode()}")[:16]


def _start_of(process: int) -> str | None:
    """When the process started, in clock ticks since boot; None when there is none.

    Process ids are used again, so an id alone does not name a process. A zombie is no longer alive.
    """
    fields = stat_fields(process)
    return None if not fields or fields[STATE] == "Z" else fields[START]


def _is_stopped(process: int) -> bool:
    """Whether a signal such as SIGSTOP stopped the process."""
    return stat_fields(process)[:1] == ["T"]


class Worker:
    """Holds leases for one run in the present process; `name` is what stands in the store."""

    _numbers = itertools.count(1)
    _open: ClassVar[set[str]] = set()

    def __init__(self) -> None:
        process = os.getpid()
        start = _start_of(process) or "0"
        self.name = f"{_machine()}:{process}:{start}:{next(Worker._numbers)}"
        Worker._open.add(self.name)

    def close(self) -> None:
        """Voids all leases of this worker."""
        Worker._open.discard(self.name)

    @classmethod
    def is_open(cls, name: str) -> bool:
        """Whether a worker of the present process with this name is still open."""
        return name in cls._open


def machine() -> str:
    """How the leases of this machine begin."""
    return _machine()


def expired(now: str) -> str:
    """The time of the last heartbeats that are too old now. Times are texts in one form, so that
    the database compares them as they are."""
    moment = datetime.datetime.fromisoformat(now) - datetime.timedelta(seconds=EXPIRES_S)
    # Leases of a heartbeat at this very moment are void, too.
    return (moment + datetime.timedelta(microseconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@functools.cache
def _own_start(process: int) -> str | None:
    """When this process started; `process` is its id, which is another one after a fork."""
    return _start_of(process)


def is_held(lease: str | None, heartbeat: str | None, *, now: str | None = None) -> bool:
    """Whether somebody still works under this lease."""
    if lease is None or heartbeat is None:
        return False
    machine, process, start, _ = lease.split(":")
    if machine == _machine() and Path("/proc").is_dir():
        if int(process) == os.getpid() and _own_start(os.getpid()) == start:
            return Worker.is_open(lease)
        if _start_of(int(process)) != start:
            return False
        if not _is_stopped(int(process)):
            return True
    return _age_s(heartbeat, now or utc_now()) < EXPIRES_S


def _age_s(earlier: str, later: str) -> float:
    parse = datetime.datetime.fromisoformat
    return (parse(later) - parse(earlier)).total_seconds()
