"""The process of a worker that `LocalWorkers`, or an actor on a Ray cluster, starts.

It reads one line of JSON from its standard input, which says what to do: so that a password in the
address of the store is neither in its command line nor in its environment. The input stays open as
long as the process that started it lives; at its end, the worker gives back what it has and ends.
A mistake of the user is written to standard output, and the exit code is 2. Otherwise it writes how
many trials it has evaluated.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from syno._util.errors import UserError
from syno.launch.starter import MISTAKE
from syno.study.progress import Notes


def main() -> None:
    """Work until the input ends."""
    given = json.loads(sys.stdin.readline())
    if given["cores"]:
        os.sched_setaffinity(0, given["cores"])
    threading.Thread(target=wait_for_end, daemon=True, name="syno-parent").start()
    from syno.store import Store
    from syno.study.worker import work

    try:
        with Store.open(given["store"], create=False) as store:
            count = work(
                store,
                tags=given["tags"],
                study=given["study"],
                idle_s=given["idle_s"],
                data_dir=given["data_dir"],
                device=given["device"],
                predictor=given["predictor"],
                observer=Notes(),
            )
        sys.stdout.write(str(count))
    except UserError as error:
        sys.stdout.write(str(error))
        sys.stdout.flush()
        sys.exit(MISTAKE)


def wait_for_end() -> None:
    """Wait for the end of the standard input, then end this process as SIGTERM does."""
    while sys.stdin.readline():
        pass
    os.kill(os.getpid(), signal.SIGTERM)
