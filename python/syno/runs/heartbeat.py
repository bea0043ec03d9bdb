"""A sign of life that is given again and again, such as the renewal of a lease."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from syno._util.errors import UserError


@contextlib.contextmanager
def beating(beat: Callable[[], object], period: float) -> Iterator[list[str]]:
    """Call a function every `period` seconds while the block runs, in a thread of its own.

    A call that fails is repeated at the next beat, because a store may be locked for a moment. If
    it stays unavailable, what the block does itself reports it.

    Returns:
        The messages of the calls that failed, a list that grows.
    """
    done, missed = threading.Event(), list[str]()

    def run() -> None:
        while not done.wait(period):
            try:
                beat()
            except UserError as error:
                missed.append(str(error))

    thread = threading.Thread(target=run, daemon=True, name="syno-heartbeat")
    thread.start()
    try:
        yield missed
    finally:
        done.set()
        thread.join()
