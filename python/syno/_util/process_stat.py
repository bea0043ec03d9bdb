"""What Linux says of a process in /proc/PID/stat, as it stands there.

psutil reads that file as well, but gives less of it: the start as a time of the clock, which may be
set anew while a process runs, so that it would name another process in a store; and no page faults.
"""

from __future__ import annotations

from pathlib import Path

# Numbers of fields, counted from the state on.
STATE, START = 0, 19


def stat_fields(process: int) -> list[str]:
    """The fields from the state on, which is a letter; empty when there is no such process.

    `Z` is the state of a zombie, which has ended and was not waited for; `T` of a process that a
    signal stopped.
    """
    try:
        # "pid (command) state parent ...": a command may hold blanks and brackets.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
