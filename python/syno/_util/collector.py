"""Python's collector of reference cycles, paused where very many objects are made at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Let the collector rest inside of the block.

    It starts whenever a number of objects was made, and looks at all that there are. While rows of
    a database become objects that all stay, it finds nothing, in a third of the time of reading.
    Objects outside of cycles are freed as ever.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
