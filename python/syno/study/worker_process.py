"""The process of a worker that `LocalWorkers`, or an actor on a Ray cluster, starts.

It reads its orders from its standard input, which stays open as long as the process that started it
lives; at its end, the worker gives back what it has and ends. A mistake of the user is written to
standard output, and the exit code is 2. Otherwise it writes how many trials it has evaluated.
"""

from __future__ import annotations

import os
import signal
import sys

from syno._util.errors import UserError
from syno.launch.starter import MISTAKE
from syno.runs import helper_process
from syno.study.progress import Notes


def main() -> None:
    """Work until the input ends."""
    given = helper_process.read_orders()
    if given["cores"]:
        os.sched_setaffinity(0, given["cores"])
    end_with_parent()
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


def end_with_parent() -> None:
    """End this process as SIGTERM does when the input ends."""
    helper_process.at_the_end_of_input(lambda: os.kill(os.getpid(), signal.SIGTERM))
