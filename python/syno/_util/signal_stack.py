"""The stack on which this thread handles signals: kept as it is while foreign code runs.

The CPU plugin of OpenVINO sets one of its own for the thread that compiles a model, and unmaps it
with the model. With two models alive, or where there was none before, the thread is left with
memory that is gone, and the next Ctrl-C ends the process by a segmentation fault.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
from collections.abc import Iterator

_DISABLE = 2


class _Stack(ctypes.Structure):
    """stack_t of <signal.h> on Linux."""

    _fields_ = (("place", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


@contextlib.contextmanager
def kept_signal_stack() -> Iterator[None]:
    """Give the thread back the stack that it had before the block; on other systems than Linux, do
    nothing.

    If the system refuses it, because handlers need more by now, there is none.
    """
    if sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None)
    before = _Stack()
    known = libc.sigaltstack(None, ctypes.byref(before)) == 0
    before.flags &= _DISABLE  # the others are no settings
    try:
        yield
    finally:
        if known and libc.sigaltstack(ctypes.byref(before), None) != 0:
            libc.sigaltstack(ctypes.byref(_Stack(None, _DISABLE, 0)), None)
