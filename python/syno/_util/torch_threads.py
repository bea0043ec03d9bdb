"""How many threads torch computes with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from syno._util.threads import check_threads


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """torch computes with so many threads inside, and with as many as before afterwards.

    torch has one number of threads for the whole process. UserError beyond MOST_THREADS.
    """
    check_threads(count)
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
