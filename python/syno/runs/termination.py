"""What a process does when it is asked to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_termination(react: Callable[[], object]) -> Iterator[None]:
    """Call a function on SIGTERM instead of ending the process.

    Only the main thread can set handlers of signals: in any other, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: react())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
