"""How many threads may be asked for."""

from __future__ import annotations

from typing import Any

from syno._errors import UserError

# Cores of the largest machines with two processors. Beyond its cores no machine gets faster, while
# every thread takes memory, and a system that refuses one more ends the process (OpenMP). It is
# kMaxThreads of the C++ library (support/threads.h), too.
MOST_THREADS = 512


def check_threads(threads: Any, *, least: int = 1) -> None:
    """UserError unless `threads` is an integer from `least` (0: all cores) to MOST_THREADS."""
    whole = isinstance(threads, int) and not isinstance(threads, bool)
    if whole and least <= threads <= MOST_THREADS:
        return
    bound = f"at most {MOST_THREADS}" if whole and threads > least else f"at least {least}"
    raise UserError(
        f"'threads' is an integer of {bound}, got {threads!r}\n"
        f"  expected: an integer from {least} to {MOST_THREADS}      got: {threads!r}\n"
        "  hint: more threads than the machine has cores make nothing faster"
    )
