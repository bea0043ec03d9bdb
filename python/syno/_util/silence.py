"""Libraries that say less."""

from __future__ import annotations

import contextlib
import logging
import os
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


@contextmanager
def prints_on_stderr() -> Iterator[None]:
    """With standard error as the standard output of compiled code, whose messages are no results.

    HiGHS prints such messages now and then, whatever its options are.
    """
    try:
        print(end="", flush=True)
        before = os.dup(1)
    except OSError:  # closed, so that nothing can be printed
        yield
        return
    with contextlib.suppress(OSError):  # standard error is closed
        os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(before, 1)
        os.close(before)
