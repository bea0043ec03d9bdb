"""The heartbeat of a process that drives a study."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from syno._util.errors import UserError
from syno.store import HEARTBEAT_S, Store, StudyRecord


@contextlib.contextmanager
def beating(store: Store, study: StudyRecord, token: int) -> Iterator[None]:
    """Renew the lease of the driver in a thread of its own."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(HEARTBEAT_S):
            # A renewal that fails is repeated; what the driver does itself reports it.
            with contextlib.suppress(UserError):
                store.renew_driver(study, token)

    thread = threading.Thread(target=beat, daemon=True, name="syno-driver")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
