"""Libraries that say less."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Without what torch says on the way: it concerns its own internals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)


_redirecting = threading.Lock()  # the second of two would take the first one's for standard output


@contextmanager
def prints_on_stderr() -> Iterator[None]:
    """With standard error as the standard output of compiled code, whose messages are no results.

    HiGHS prints such messages now and then, whatever its options are. One thread at a time is in
    such a block.
    """
    with _redirecting, contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # one of them is closed
            print(end="", flush=True)
            before = os.dup(1)
            stack.callback(os.close, before)
            stack.callback(os.dup2, before, 1)
            os.dup2(2, 1)
        yield
