"""Failures that may have an external cause: the evaluation is repeated once.

A crash, a hang or a lack of memory may be caused by the machine: another process may use the
memory. An operator that fails twice in such a way is put in quarantine. Other failures (a loss that
is not finite, an error of the user) are final.
"""

from __future__ import annotations

import errno
import re

from syno._util.errors import UserError
from syno.store.records import CRASH, ERROR, HANG, OUT_OF_MEMORY, TIMEOUT, Outcome

# The messages of torch, C++ and Python.
_NO_MEMORY = re.compile(
    r"out[_ ]of[_ ]memory|MemoryError|bad_alloc|[Cc]an(?:'|no)t allocate memory", re.ASCII
)


def failure_kind(outcome: Outcome) -> str | None:
    """Return `crash`, `hang` or `out_of_memory`, and None for every other outcome."""
    if outcome.status not in (ERROR, TIMEOUT):
        return None
    kind = outcome.details.get("failure")
    if kind in (CRASH, HANG, OUT_OF_MEMORY):
        return str(kind)
    if outcome.status == ERROR and _NO_MEMORY.search(outcome.reason):
        return OUT_OF_MEMORY
    return None


def check_disk(error: Exception) -> None:
    """Raise a UserError for a full disk, which says nothing about the operator.

    Without it, a machine with a full disk would soon answer all proposals with an error.
    """
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        where = f" while writing '{error.filename}'" if error.filename else ""
        raise UserError(
            f"the disk is full{where}\n"
            "  what to do: make room, and resume the search or start the worker again"
        ) from error
