"""A lease is renewed while an evaluation runs."""

from __future__ import annotations

import functools
import time

from syno._util.errors import UserError
from syno.runs.heartbeat import beating
from syno.store import Store, Worker


class Renewals:
    """Counts renewals; the first fails, as on a store that is locked for a moment."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str]] = []

    def renew(self, proposal: int, worker: str) -> bool:
        self.asked.append((proposal, worker))
        if len(self.asked) == 1:
            raise UserError("the store is locked")
        return True


def test_a_heartbeat_goes_on_after_a_failure_and_ends_with_its_block():
    renewals = Renewals()
    with beating(functools.partial(renewals.renew, 7, "worker"), 0.005) as missed:
        deadline = time.monotonic() + 60
        while len(renewals.asked) < 3 and time.monotonic() < deadline:
            time.sleep(0.002)
    assert renewals.asked[:3] == [(7, "worker")] * 3
    assert missed == ["the store is locked"]
    count = len(renewals.asked)
    time.sleep(0.03)
    assert len(renewals.asked) == count


def test_a_heartbeat_moves_the_time_in_the_store(tmp_path):
    with Store.open(str(tmp_path / "store.db")) as store:
        study = store.create_study("study", specification=("5bec", {}), settings={}, seed=0)
        worker = Worker()
        asked = store.ask(study, 1, ("text", "key"), worker.name)
        before = _heartbeat(store)
        with beating(functools.partial(store.renew, asked.id, worker.name), 0.005):
            deadline = time.monotonic() + 60
            while _heartbeat(store) == before and time.monotonic() < deadline:
                time.sleep(0.002)
        assert _heartbeat(store) > before
        worker.close()


def _heartbeat(store: Store) -> str:
    with store.database.reading() as connection:
        return str(connection.exec_driver_sql("SELECT heartbeat FROM proposal").scalar_one())
