"""The lease of a process that drives a study, and its heartbeat."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from contextlib import AbstractContextManager

from syno._util.errors import UserError
from syno.runs.heartbeat import beating
from syno.store import HEARTBEAT_S, Store, StudyRecord, Worker


def driver_beats(store: Store, study: StudyRecord, token: int) -> AbstractContextManager[object]:
    """Renew the lease of the driver while a block runs."""
    return beating(functools.partial(store.presence.renew_driver, study, token), HEARTBEAT_S)


@contextlib.contextmanager
def driving(store: Store, study: StudyRecord, what: str) -> Iterator[int]:
    """Be the one process that works on a study which workers take no part in.

    Args:
        store, study: the study.
        what: the study in words, such as "adaptation".

    Returns:
        The token of this process as the driver of the study.

    Raises:
        UserError: another process works on it.
    """
    worker = Worker()
    try:
        token = store.presence.drive(study, worker.name)
        if token is None:
            raise UserError(
                f"another process works on the {what} '{study.name}' in the store '{store.name}'\n"
                "  what to do: wait until it ends, and run the same command again, which then "
                "returns its result; or choose another name"
            )
        with driver_beats(store, study, token):
            try:
                yield token
            finally:
                with contextlib.suppress(UserError):  # the first error is the one to report
                    store.presence.leave_driver(study, token)
    finally:
        worker.close()
