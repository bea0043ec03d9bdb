"""Pools of processes that Syno's own functions run in."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from syno.runs.helper_process import safe_spawning


@contextmanager
def spawned(
    jobs: int, start: Callable[..., None] | None = None, *given: Any
) -> Iterator[ProcessPoolExecutor]:
    """Run a pool of processes, which import nothing from the current folder.

    However the block ends, none of the processes stays behind: after an error they are ended in the
    middle of what they do.

    Args:
        jobs: the number of processes.
        start, given: what each of them calls first.
    """
    others = set(multiprocessing.active_children())
    with safe_spawning():
        pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), start, given)
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise
        finally:
            pool.shutdown()
