"""The heartbeat of an evaluation, which keeps its lease alive."""

from __future__ import annotations

import threading

from syno._util.errors import UserError
from syno.store import HEARTBEAT_S, Store


class Heartbeat:
    """Renews the lease of one proposal every `period` seconds, in a separate thread.

    with Heartbeat(store, proposal, worker): evaluate(...)

    A renewal that fails is repeated at the next beat, because the store may be locked for a moment.
    If the store stays unavailable, storing the result reports it.
    """

    def __init__(
        self, store: Store, proposal: int, worker: str, *, period: float = HEARTBEAT_S
    ) -> None:
        self._store = store
        self._proposal = proposal
        self._worker = worker
        self._period = period
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True, name="syno-heartbeat")
        self.missed: list[str] = []  # the messages of failed renewals

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._done.wait(self._period):
            try:
                self._store.renew(self._proposal, self._worker)
            except UserError as error:
                self.missed.append(str(error))
