"""Workers on this machine, in processes that are started again when they die."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from syno._util.errors import UserError
from syno.launch import child
from syno.launch.starter import MISTAKE, check_reachable, orders
from syno.runs.supervise import Policy, Restarts, wait_or_kill
from syno.store import Store

_MODULE = "syno.study.worker_process"
_END_S = 30.0  # for what a worker does when it is asked to end
# A worker that ends by itself failed at its start. One that was killed did not fail.
_POLICY = Policy(most=3, early_s=60.0)


@dataclass
class _Job:
    """One place for a worker: its cores and its GPU, and the process that has it now."""

    number: int
    cores: list[int]
    gpu: int | None
    process: subprocess.Popen[str] | None = None
    started: float = 0.0
    restarts: Restarts = field(default_factory=lambda: Restarts(_POLICY))
    is_done: bool = False


class LocalWorkers:
    """So many workers on this machine: `with LocalWorkers(store, study, 2) as workers: ...`.

    Each has cores of its own, so that they disturb each other little.

    Args:
        store: an open store; each worker opens it itself.
        study: the study that they work on; None for all studies of the store.
        jobs: the number of workers.
        data_dir: where the data is.
        tags: what they offer.
        idle_s: they end after so many seconds without work.
        gpus: the number of GPUs; each worker trains on one of them.
        predictor: a file of a latency predictor: they predict latencies, and measure none.

    Raises:
        UserError: if other processes cannot reach the store.
    """

    def __init__(
        self,
        store: Store,
        study: str | None,
        jobs: int,
        data_dir: str | None = None,
        *,
        tags: Sequence[str] = (),
        idle_s: float | None = None,
        gpus: int = 0,
        predictor: str | None = None,
    ) -> None:
        check_reachable(store)
        shares = shared_cores(sorted(os.sched_getaffinity(0)), jobs)
        self._jobs = [
            _Job(number, cores, number % gpus if gpus else None)
            for number, cores in enumerate(shares)
        ]
        self.evaluated = 0  # trials, by the workers that ended by themselves or were asked to
        self._given = orders(
            store.url,
            study,
            tags=tags,
            idle_s=idle_s,
            data_dir=data_dir,
            device="cuda" if gpus else "cpu",
            predictor=predictor,
        )

    def __enter__(self) -> LocalWorkers:
        try:
            for job in self._jobs:
                self._start(job)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def processes(self) -> list[int]:
        """The ids of the processes that run."""
        found = [job.process for job in self._jobs]
        return [p.pid for p in found if p is not None and p.poll() is None]

    def check(self) -> None:
        """Start workers again that died.

        Raises:
            UserError: what a worker says about a mistake, and if workers fail at their start.
        """
        for job in self._jobs:
            if job.is_done or job.process is None or job.process.poll() is None:
                continue
            said, code = self._collect(job)
            if code == MISTAKE:
                raise UserError(said)
            if code == 0 and self._given["idle_s"] is not None:
                job.is_done = True
                continue
            lasted = time.monotonic() - job.started
            if code <= 0 or lasted >= _POLICY.early_s:
                job.restarts.reset()
            elif job.restarts.failed(lasted) is None:
                raise UserError(
                    f"worker {job.number + 1} ended with exit code {code} shortly after its start, "
                    f"{_POLICY.most} times\n  what to do: see its messages above"
                )
            self._start(job)

    def wait(self) -> None:
        """Wait until all workers ended because nothing was left to do."""
        while not all(job.is_done for job in self._jobs):
            self.check()
            time.sleep(0.2)

    def close(self) -> None:
        """Ask the workers to end: they give back what they have. Kill those that do not end."""
        running = [job for job in self._jobs if job.process is not None]
        for job in running:
            assert job.process is not None
            job.process.terminate()
        until = time.monotonic() + _END_S
        for job in running:
            assert job.process is not None
            wait_or_kill(job.process, max(0.1, until - time.monotonic()))
            self._collect(job)

    def _start(self, job: _Job) -> None:
        job.process = child.start(
            _MODULE,
            self._given | {"cores": job.cores},
            len(job.cores),
            visible_gpus=None if job.gpu is None else _visible(job.gpu),
        )
        job.started = time.monotonic()

    def _collect(self, job: _Job) -> tuple[str, int]:
        """Return what a worker that ended, or is about to end, said, and its exit code."""
        process, job.process = job.process, None
        assert process is not None
        said, code = child.collect(process)
        if code == 0 and said.isdecimal():
            self.evaluated += int(said)
        return said, code


def count_gpus() -> int:
    """Return the number of GPUs of this machine that PyTorch can use.

    Raises:
        UserError: if there is none.
    """
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count == 0:
        raise UserError(
            "there is no GPU that PyTorch can use (--gpus)\n"
            "  what to do: leave out --gpus, or install the build of PyTorch for the GPU; "
            "`syno doctor` shows what is found"
        )
    return count


def shared_cores(cores: Sequence[int], jobs: int) -> list[list[int]]:
    """Divide cores among workers; with more workers than cores, some share one."""
    if jobs == 0:
        return []
    if jobs > len(cores):
        return [[cores[number % len(cores)]] for number in range(jobs)]
    size, more = divmod(len(cores), jobs)
    found, start = [], 0
    for number in range(jobs):
        end = start + size + (number < more)
        found.append(list(cores[start:end]))
        start = end
    return found


def _visible(gpu: int) -> str:
    """The name of a GPU, of those that this process may use."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    return str(gpu) if not listed else listed.split(",")[gpu].strip()
