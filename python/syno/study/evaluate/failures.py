"""Failures that may have come from outside the operator: tried once more, then quarantined.

A crash, a hang and a lack of memory may be the machine's: another process may have taken memory.
An operator that fails so twice is quarantined in its study. What a network does wrong in a regular
way (a loss that is not finite, a mistake of the user's) is no such failure.
"""

from __future__ import annotations

import re

from syno.store.records import CRASH, ERROR, HANG, OUT_OF_MEMORY, TIMEOUT, Outcome

# How torch, C++ and Python say it.
_NO_MEMORY = re.compile(
    r"out[_ ]of[_ ]memory|MemoryError|bad_alloc|[Cc]an(?:'|no)t allocate memory", re.ASCII
)


def failure_kind(outcome: Outcome) -> str | None:
    """`crash`, `hang`, `out_of_memory`, or None for every other outcome."""
    if outcome.status not in (ERROR, TIMEOUT):
        return None
    told = outcome.details.get("failure")
    if told in (CRASH, HANG, OUT_OF_MEMORY):
        return str(told)
    if outcome.status == ERROR and _NO_MEMORY.search(outcome.reason):
        return OUT_OF_MEMORY
    return None
