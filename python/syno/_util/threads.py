"""How many threads may be asked for, and how many run at once."""

from __future__ import annotations

import os

from syno import _core
from syno._util import checks

# src/syno/support/threads.h says why; a system that refuses one more ends a process with OpenMP.
MOST_THREADS = _core.MOST_THREADS


def check_threads(threads: object, *, least: int = 1) -> None:
    """UserError unless `threads` is an integer from `least` (0: all cores) to MOST_THREADS."""
    hint = "more threads than the machine has cores make nothing faster"
    checks.whole("'threads'", threads, least, MOST_THREADS, hint=hint)


def usable_cores() -> int:
    """Return the number of cores that this process may use, which a container may limit."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
