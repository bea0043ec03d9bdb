"""How many operators a study may have evaluated, and whether another one is allowed."""

from __future__ import annotations

from sqlalchemy import Connection

from syno.store import log
from syno.store.errors import AskTakenError, LimitReachedError
from syno.store.state import StudyState


def check_limit(connection: Connection, state: StudyState, limit: int, worker: str | None) -> None:
    """Check that a study may propose another operator.

    Pending proposals of `worker` itself do not count. For a driver (None), which evaluates nothing
    itself, all pending proposals do.

    Args:
        connection: the transaction.
        state: of the study, as the transaction sees it.
        limit: of the operators that are evaluated.
        worker: the name of the worker.

    Raises:
        LimitReachedError: if the operators that were evaluated, and those that other processes
            evaluate for the first time, are as many as `limit`.
        AskTakenError: if an evaluation was interrupted, which is to be repeated first.
    """
    spent = state.evaluated
    if worker is None:
        spent += len(state.waiting)
    elif state.waiting:
        for number, is_held, holder in log.open_proposals(connection, state.study.id):
            if number not in state.waiting or holder == worker:
                continue
            if not is_held:
                raise AskTakenError(
                    f"proposal {number} of the study was interrupted and comes first"
                )
            spent += 1
    if spent >= limit:
        raise LimitReachedError(f"{limit} operators of the study are evaluated or being evaluated")
