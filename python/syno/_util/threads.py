"""How many threads may be asked for."""

from __future__ import annotations

from typing import Any

from syno import _core
from syno._util.checks import shown
from syno._util.errors import UserError

# src/syno/support/threads.h says why; a system that refuses one more ends a process with OpenMP.
MOST_THREADS = _core.MOST_THREADS


def check_threads(threads: Any, *, least: int = 1) -> None:
    """UserError unless `threads` is an integer from `least` (0: all cores) to MOST_THREADS."""
    whole = isinstance(threads, int) and not isinstance(threads, bool)
    if whole and least <= threads <= MOST_THREADS:
        return
    bound = f"at most {MOST_THREADS}" if whole and threads > least else f"at least {least}"
    raise UserError(
        f"'threads' is an integer of {bound}, got {shown(threads)}\n"
        f"  expected: an integer from {least} to {MOST_THREADS}      got: {shown(threads)}\n"
        "  hint: more threads than the machine has cores make nothing faster"
    )
