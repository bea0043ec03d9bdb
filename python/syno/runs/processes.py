"""Processes as Linux shows them: a tree of them, their memory, and its end.

psutil serves where it gives what is needed. What is read from /proc here it does not give:

- a tree by the kernel's own lists of children: psutil reads every process of the machine for it,
  and a running evaluation is looked at many times a second;
- memory without that of files, which memory-mapped data is, and the size that RLIMIT_DATA limits;
- page faults, which tell that a process makes progress;
- the start of a process as a count of the kernel's, which names it in a store: psutil gives it as a
  time of the clock, which may be set anew while the process runs.

Processes are killed by numbers that were listed a moment before. psutil compares the start of a
process first, which leaves the same moment between that and the signal.

The process that forks evaluations is a *subreaper*: whatever an evaluation leaves behind, also in
sessions of its own, becomes a child of it, and is found and killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

# Numbers of fields of /proc/PID/stat, counted from the state on.
STATE, START = 0, 19
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KIB = 1024
# The rest of the machine keeps a quarter.
_SHARE = 0.75
# Private memory that is reserved but not used: stacks of threads, arenas of the allocator.
_RESERVED = 512 << 20
_REAP_S = 5.0
# Of /proc/PID/stat from the state on: page faults and processor times, with those of children.
_COUNTERS = slice(7, 13)
_LISTS_CHILDREN = Path(f"/proc/self/task/{os.getpid()}/children").exists()


def is_supported() -> bool:
    """Whether evaluations can run in processes of their own here: on Linux with /proc."""
    return sys.platform == "linux" and Path("/proc/self/status").exists()


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def adopt_orphans() -> None:
    """From now on, processes whose parent ended become children of this one."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with(parent: int) -> None:
    """This process is killed when its parent ends, at once when that was before."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def wake_when_the_parent_ends() -> None:
    """When the parent of this process ends, this one gets SIGCONT: it notices the end, and cleans
    up, even when it is stopped at that moment."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def prefer_in_shortage() -> None:
    """When the machine runs out of memory, this process is killed before others of the user."""
    with contextlib.suppress(OSError):  # a container may forbid it; the limits hold anyway
        Path("/proc/self/oom_score_adj").write_text("1000")


def limit_allocations(most: int) -> None:
    """Private memory of this process beyond `most` bytes is refused: allocations fail with an error
    of their own instead of a kill. It counts what is reserved, so there is room on top of it."""
    ceiling = _field(os.getpid(), "VmData") + most + _RESERVED
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        ceiling = min(ceiling, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (ceiling, hard))


def machine_memory() -> int:
    """Bytes that this process may use at most: those of the machine or of its control group."""
    found = int(psutil.virtual_memory().total)
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # not there, or "max"
            found = min(found, int(Path(path).read_text()))
    return found


def default_memory_limit() -> int:
    """Three quarters of what there is."""
    return int(_SHARE * machine_memory())


def threads(process: int) -> int:
    """How many threads a process has."""
    return int(psutil.Process(process).num_threads())


def descendants(process: int, spared: int | None = None) -> list[int]:
    """Children, their children and so on, those that have ended and were not waited for as well.

    spared: a child that is left out, with its own.
    """
    if not _LISTS_CHILDREN:
        with contextlib.suppress(psutil.NoSuchProcess):
            below = [child.pid for child in psutil.Process(process).children(recursive=True)]
            own = set() if spared is None else {spared, *descendants(spared)}
            return [each for each in below if each not in own]
        return []
    found: list[int] = []
    queue = [process]
    while queue:
        children = [child for child in _children(queue.pop()) if child != spared]
        found += children
        queue += children
    return found


def _children(process: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it ended while it was looked at
        for task in os.listdir(f"/proc/{process}/task"):
            text = Path(f"/proc/{process}/task/{task}/children").read_text()
            found += map(int, text.split())
    return found


def stat_fields(process: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on, which is a letter; empty when there is no
    such process.

    `Z` is the state of a zombie, which has ended and was not waited for; `T` of a process that a
    signal stopped.
    """
    try:
        # "pid (command) state parent ...": a command may hold blanks and brackets.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


@dataclass(frozen=True)
class Activity:
    """What a process is doing: its state as a letter (`T` for stopped, `Z` for a zombie, empty when
    there is no such process), and counters of processor time and page faults, which change while it
    makes progress."""

    state: str
    counters: tuple[str, ...] = ()

    @property
    def is_stopped(self) -> bool:
        """Whether a signal such as SIGSTOP stopped it. A debugger does so in another way."""
        return self.state == "T"

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state in ("", "Z", "X")


def activity(process: int) -> Activity:
    """What a process is doing at this moment."""
    fields = stat_fields(process)
    return Activity(fields[STATE], tuple(fields[_COUNTERS])) if fields else Activity("")


def memory(processes: Iterable[int], most: int) -> int:
    """Bytes that the processes hold together, apart from files: memory-mapped data is not counted.

    Pages that several of them share count once where it matters, near `most`: to find that out is
    slow.
    """
    listed = list(processes)
    quick = sum(_field(p, "RssAnon") + _field(p, "RssShmem") + _field(p, "VmSwap") for p in listed)
    if quick <= most or len(listed) < 2:
        return quick
    return sum(map(_proportional, listed))


def _field(process: int, name: str) -> int:
    """A line of /proc/PID/status in bytes; 0 once the process has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * _KIB
    return 0


def _proportional(process: int) -> int:
    """Bytes with each shared page divided among those that share it."""
    total = 0
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            name, _, rest = line.partition(":")
            if name in ("Pss_Anon", "Pss_Shmem", "SwapPss"):
                total += int(rest.split()[0]) * _KIB
    return total


def signal_name(number: int) -> str:
    """The name of a signal, such as SIGKILL."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def kill_group(leader: int) -> None:
    """Kills a process group that may have ended already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def kill_tree(process: int) -> bool:
    """Kills another process and all below it; False when something stays.

    It is stopped first: it starts nothing more then, and where it adopts orphans, whatever loses
    its parent on the way stays below it and is found.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGSTOP)
    end = time.monotonic() + _REAP_S
    while alive := [p for p in descendants(process) if not activity(p).has_ended]:
        for each in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        if time.monotonic() > end:
            break
        time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    return not alive


def clear(process: int, spared: int | None = None) -> bool:
    """Kills and waits for all below `process`, which is this one; False when something stays.

    Killing goes on until nothing is left: a process that forks while it is killed leaves children.
    spared: a child that stays, with its own.
    """
    end = time.monotonic() + _REAP_S
    while left := descendants(process, spared):
        for each in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGKILL)
        for each in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(each, os.WNOHANG)
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True
