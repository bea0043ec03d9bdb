"""The process of one worker, as the process that starts it sees it.

At the end of its input, the worker gives back what it has and ends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping

from syno._util.json_types import Json
from syno.runs import helper_process

_MOST_SAID = 1 << 16  # bytes
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def start(
    module: str,
    given: Mapping[str, Json],
    threads: int,
    *,
    visible_gpus: str | None = None,
    folder: str | None = None,
    keep_errors: bool = False,
) -> subprocess.Popen[str]:
    """Start the process of a worker.

    Args:
        module: whose `main` it runs, `syno.study.worker_process`.
        given: its orders.
        threads: the number of threads of its libraries.
        visible_gpus: the GPUs that it may use, as in CUDA_VISIBLE_DEVICES. Default: those of this
            process.
        folder: its current folder. Default: that of this process.
        keep_errors: give its standard error to this process, as `process.stderr`.
    """
    changes = dict.fromkeys(_THREADS, str(max(1, threads)))
    if visible_gpus is not None:
        changes["CUDA_VISIBLE_DEVICES"] = visible_gpus
    stderr = subprocess.PIPE if keep_errors else None
    return helper_process.start(module, given, stderr=stderr, folder=folder, changes=changes)


def collect(process: subprocess.Popen[str]) -> tuple[str, int]:
    """Return what a worker that ended, or is about to end, said, and its exit code."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    code = process.wait()
    with process.stdout:
        # Without waiting: processes that a killed worker has started hold the other end, too.
        os.set_blocking(process.stdout.fileno(), False)
        try:
            said = os.read(process.stdout.fileno(), _MOST_SAID).decode(errors="replace")
        except BlockingIOError:
            said = ""
    return said, code
