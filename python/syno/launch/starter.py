"""Who starts the workers of a search, and what every worker process is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.store import Store

# The exit code of the process of a worker after a mistake of the user.
MISTAKE = 2


class Starter(Protocol):
    """Starts workers, and keeps them running: `with starter: drive(study, watch=starter.check)`.

    At the end of the block, the workers give back what they evaluate, and end.
    """

    def __enter__(self) -> Starter:
        """Start the workers."""

    def __exit__(self, *_: object) -> None:
        """End the workers."""

    def check(self) -> None:
        """Start workers again that died; call it about once a second.

        Raises:
            UserError: what a worker says about a mistake of the user, and if workers fail again
                and again.
        """


def check_reachable(store: Store) -> None:
    """Check that other processes can reach a store.

    Raises:
        UserError: for a store in memory.
    """
    if store.in_memory:
        raise UserError("a store in memory has no workers: other processes cannot reach it")


def orders(
    store: str,
    study: str | None,
    *,
    tags: Sequence[str] = (),
    idle_s: float | None = None,
    data_dir: str | None = None,
    device: str = "cpu",
    predictor: str | None = None,
) -> dict[str, Json]:
    """Return what the process of a worker reads from its standard input, as JSON.

    Args:
        store: the address of the store, with the password if it has one.
        study: the study to work on; None for all studies of the store.
        tags: what the worker offers.
        idle_s: it ends after so many seconds without work.
        data_dir: where the data is.
        device: what trains networks, `cpu` or `cuda`.
        predictor: a file of a latency predictor.
    """
    return {
        "store": store,
        "study": study,
        "tags": list(tags),
        "idle_s": idle_s,
        "data_dir": data_dir,
        "device": device,
        "predictor": predictor,
    }
