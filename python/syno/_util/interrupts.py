"""Ctrl-C as a wish for an orderly end: it is noted, and what was done by then counts."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


class Interrupts:
    """Whether Ctrl-C was pressed. It asks for an end; a second one interrupts as usual."""

    def __init__(self, told: Callable[[], object]) -> None:
        self.interrupted = False
        self._told = told

    def interrupt(self, *_: object) -> None:
        """Note it; from now on Ctrl-C interrupts as usual."""
        self.interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._told()


@contextlib.contextmanager
def ends_on_interrupt(told: Callable[[], object]) -> Iterator[Interrupts]:
    """While the block runs, Ctrl-C is noted and `told` is called; it does not end the program."""
    interrupts = Interrupts(told)
    # Only the main thread may say what a signal does.
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, interrupts.interrupt)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
