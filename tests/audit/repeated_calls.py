"""Calls everything public many times and looks at the memory: see test_repeated_calls.py.

For each function: some calls to warm up, then windows of calls. The bytes that are in use (malloc's
own count, all of Python's objects among them) are taken after each window. A function that keeps
memory grows in every window; tables and caches that fill grow in one or two. So it is the median
window that counts. The resident memory of the whole process is looked at besides.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .public_calls import calls

CALLS = int(os.environ.get("SYNO_REPEATED_CALLS", "20000"))
WINDOWS = 5
# An expensive function is called for so many seconds of the processor, but in each window so many
# times at least.
SECONDS = 10.0
LEAST_CALLS = 10
# A window may grow by so many bytes a call, and by so many bytes whatever the number of calls: the
# allocator's caches of small pieces count as used, and fill ever more slowly (some 20 kB in the
# first window, half of it in the next). At full size 38 bytes a call are found, and a kilobyte a
# call of a function that is called thirty times in a window.
BYTES_A_CALL = 30
SLACK = 32 << 10
# What the resident memory of the process may grow by over all functions: stacks of threads and
# pages that the allocator cannot give back. Leaks beside malloc, such as of mappings, are larger.
RESIDENT_SLACK = 48 << 20


class _Mallinfo(ctypes.Structure):
    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks")
    _fields_ = [(name, ctypes.c_size_t) for name in (*_names, "fordblks", "keepcost")]


_LIBC = ctypes.CDLL(None)
_LIBC.mallinfo2.restype = _Mallinfo


def in_use() -> int:
    """Bytes that malloc has handed out: of its heaps, and mapped one by one."""
    gc.collect()
    found = _LIBC.mallinfo2()
    return int(found.uordblks + found.hblkhd)


def resident() -> int:
    """Bytes of the process in memory, without what malloc could give back."""
    gc.collect()
    _LIBC.malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(group: list[Callable[[], Any]], most: int) -> tuple[int, list[int]]:
    """How many calls a window had, and by how many bytes each grew."""
    for call in group:  # what is made once: caches, compiled code, tables of threads
        call()
        call()
    began = time.process_time()
    for call in group:
        call()
    each = (time.process_time() - began) / len(group)
    count = min(most, max(LEAST_CALLS * WINDOWS, int(SECONDS / each))) // WINDOWS
    count = max(1, count // len(group)) * len(group)
    for turn in range(count // 2):  # a warm-up as long as half a window
        group[turn % len(group)]()
    marks = [in_use()]
    for _ in range(WINDOWS):
        for turn in range(count):
            group[turn % len(group)]()
        marks.append(in_use())
    return count, [after - before for before, after in itertools.pairwise(marks)]


def main() -> int:
    """Prints a line for each function; 1 when one of them, or the process, grows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--leaks", action="store_true", help="functions that leak, besides")
    asked = parser.parse_args()
    assert os.environ.get("PYTHONMALLOC") == "malloc", "Python's own allocator hides what is kept"
    table = calls(asked.folder)
    if asked.leaks:
        table |= {name: [leak] for name, leak in _LEAKS.items()}
    if asked.only:
        table = {name: table[name] for name in asked.only}
    for group in table.values():
        for call in group:
            call()
    before, total, grown = resident(), 0, []
    for name, group in table.items():
        count, windows = growth(group, asked.calls)
        total += count * WINDOWS
        median = statistics.median(windows)
        wrong = median > BYTES_A_CALL * count + SLACK
        grown += [name] if wrong else []
        said = f"{name:32} {count * WINDOWS:6,} calls, {median / count:6.1f} bytes a call"
        print(f"{said}, windows {windows}{' grows' if wrong else ''}", flush=True)
    more = resident() - before
    print(f"{total:,} calls, the resident memory grew by {more / 1e6:.1f} MB", flush=True)
    return 1 if grown or more > RESIDENT_SLACK else 0


_KEPT: list[Any] = []
_LEAKS: dict[str, Callable[[], Any]] = {
    "leak of Python": lambda: _KEPT.append(bytes(67)),  # 100 bytes with its head
    "leak of malloc": lambda: ctypes.memset(_malloc(100), 1, 100),
}


def _malloc(size: int) -> int:
    _LIBC.malloc.restype = ctypes.c_void_p
    return int(_LIBC.malloc(size))


if __name__ == "__main__":
    sys.exit(main())
