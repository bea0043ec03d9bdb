"""Workers of a search on a Ray cluster, in the process of the search.

This process does not import Ray: `ray_process.py` speaks with the cluster, and is started again if
it dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from syno._util.checks import whole
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.launch.ray_cluster import check_address, is_installed
from syno.launch.starter import check_reachable, orders
from syno.runs import helper_process
from syno.runs.supervise import Policy, Restarts, wait_or_kill
from syno.store import Store

_MODULE = "syno.launch.ray_process"
CONNECT_S = 60.0
_READ_S = 5.0  # for the last lines of a process that has ended
_END_S = 45.0  # more than the workers have
_POLICY = Policy(most=5, early_s=60.0, first_s=1.0)
_LONGEST_LINE = 500  # characters
_LOOPBACK = ("", "localhost", "127.0.0.1", "::1")


class RayWorkers:
    """Workers on a Ray cluster: `with RayWorkers(store, study, address) as workers: ...`.

    Each of them is our plain worker, which takes its work from the store; Ray places it and says
    when it is gone. A worker that dies is started again, on whatever node has room.

    Args:
        store: an open store. With more than one node, it is on a server.
        study: the study that they work on.
        address: `auto` for the cluster that this machine belongs to, or HOST:PORT.
        jobs: the number of workers; None for as many as the cluster has room for.
        cores: the number of cores of each.
        gpus: the GPUs of each: a share of one, or a whole number. 0: they train on the CPU.
        tags: what they offer. Where nodes have a custom resource of this name, they run there only.
        data_dir: where the data is on the nodes.
        predictor: a file of a latency predictor, as in `LocalWorkers`.
        note: is called with what the user should know.

    Raises:
        UserError: if Ray is not installed, and for what is wrong with the arguments.
    """

    def __init__(
        self,
        store: Store,
        study: str | None,
        address: str,
        jobs: int | None = None,
        *,
        cores: int = 1,
        gpus: float = 0.0,
        tags: Sequence[str] = (),
        data_dir: str | None = None,
        predictor: str | None = None,
        note: Callable[[str], None],
    ) -> None:
        check_options(address, jobs, gpus)
        check_reachable(store)
        worker = orders(
            store.url,
            study,
            tags=tags,
            data_dir=data_dir,
            device="cuda" if gpus else "cpu",
            predictor=predictor,
        )
        self._address, self._note = address, note
        self._given: dict[str, Json] = {
            "address": address,
            "jobs": jobs,
            "cores": cores,
            "gpus": gpus,
            "tags": list(tags),
            "one_node": store.path is not None,
            "loopback": store.path is None and (urlsplit(store.url).hostname or "") in _LOOPBACK,
            "orders": worker | {"threads": cores, "folder": os.getcwd()},
        }
        self._process: subprocess.Popen[str] | None = None
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._errors: deque[str] = deque(maxlen=1)  # the last line that it wrote
        self._readers: list[threading.Thread] = []
        self._is_ready = self._was_ready = False  # this process, and any before
        self._refusal = ""  # what a process said that could not connect again
        self._started = self._next = 0.0
        self._restarts = Restarts(_POLICY)
        self.placed: list[dict[str, Json]] = []

    def __enter__(self) -> RayWorkers:
        try:
            self._start()
            while not self._is_ready:
                self._take(timeout=0.1)
                self._check_process(is_first=True)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def processes(self) -> list[int]:
        """The process that speaks with the cluster, if it runs."""
        return [] if self._process is None else [self._process.pid]

    def check(self) -> None:
        """Take what the cluster has to say, and connect again if the connection is lost.

        Raises:
            UserError: what a worker says about a mistake, if all workers fail, and if the cluster
                is lost.
        """
        self._take(timeout=0.0)
        if self._process is not None:
            self._check_process(is_first=False)
        elif time.monotonic() >= self._next:
            self._start()

    def close(self) -> None:
        """End the workers: they give back what they have."""
        if self._process is None:
            return
        self._end_process(_END_S if self._is_ready else _READ_S)
        with contextlib.suppress(queue.Empty):
            while True:
                message = self._messages.get_nowait()
                if message["kind"] == "note":
                    self._note(str(message["text"]))

    def _start(self) -> None:
        self._errors.clear()
        # Ray lets workers import from the folder of the process that starts them.
        self._process = helper_process.start(
            _MODULE, self._given, stderr=subprocess.PIPE, folder="/"
        )
        self._is_ready, self._refusal, self._started = False, "", time.monotonic()
        self._readers = [
            threading.Thread(target=read, args=(self._process,), daemon=True)
            for read in (self._read, self._read_errors)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                if line.endswith("\n"):  # not one of which a killed process wrote a part
                    self._messages.put(json.loads(line))

    def _read_errors(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        with process.stderr:
            for line in process.stderr:
                if line.strip():
                    self._errors.append(line.strip()[:_LONGEST_LINE])

    def _take(self, timeout: float) -> None:
        """Do what the messages say that are there, or that come within a time."""
        while True:
            try:
                message = self._messages.get(timeout > 0, timeout)
            except queue.Empty:
                return
            if message["kind"] == "mistake":
                if self._is_ready or not self._was_ready:
                    raise UserError(str(message["text"]))
                self._refusal = str(message["text"])  # the cluster may come back
            if message["kind"] == "note":
                self._note(str(message["text"]))
            elif message["kind"] == "placed":
                self.placed = list(message["workers"])
            elif message["kind"] == "ready":
                self._is_ready = self._was_ready = True
                self._note(
                    f"{message['workers']} workers on the Ray cluster, which has "
                    f"{message['nodes']} node{'' if message['nodes'] == 1 else 's'}"
                )

    def _check_process(self, *, is_first: bool) -> None:
        """Notice that the process has ended or that it does not connect."""
        assert self._process is not None
        lasted = time.monotonic() - self._started
        if self._process.poll() is None:
            if self._is_ready or lasted < CONNECT_S:
                return
            reason = f"the Ray cluster '{self._address}' did not answer within {CONNECT_S:g} s"
        else:
            for reader in self._readers:
                reader.join(_READ_S)
            self._take(timeout=0.0)  # a mistake that it wrote at its end
            reason = f"the process that speaks with the Ray cluster {self._how()}"
        reason = self._refusal.partition("\n")[0] or reason
        self._end_process(0.0)
        if is_first and not self._is_ready:
            raise UserError(
                f"{reason}\n"
                "  what to do: `ray status` on this machine; all machines need the same versions "
                "of Ray and Python"
            )
        pause = self._restarts.failed(lasted if self._is_ready else 0.0)
        if pause is None:
            raise UserError(
                f"the Ray cluster '{self._address}' is lost: {reason}\n"
                "  what to do: start it again, then `syno resume`; nothing that is in the store "
                "is lost"
            )
        self._note(f"{reason}; it is started again in {pause:g} s")
        self._next = time.monotonic() + pause

    def _how(self) -> str:
        """How the process ended, with the last line that it wrote."""
        assert self._process is not None
        last = f": {self._errors[0]}" if self._errors else ""
        return f"ended with exit code {self._process.returncode}{last}"

    def _end_process(self, wait_s: float) -> None:
        """End the process; it has so many seconds to end the workers."""
        process, self._process = self._process, None
        assert process is not None
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        wait_or_kill(process, wait_s)
        self.placed = []


def check_options(address: str, jobs: int | None, gpus: float) -> None:
    """Check how workers on a Ray cluster were asked for, and that Ray is installed.

    Raises:
        UserError: for what is wrong.
    """
    check_address(address)
    if jobs is not None:
        whole("'jobs'", jobs, least=1, hint="the Ray cluster starts the workers (--ray)")
    if gpus > 1 and gpus != int(gpus):
        raise UserError(
            f"a worker has a share of one GPU or a whole number of them, got {gpus:g} "
            "(--gpus-per-worker)\n  expected: such as 0.5, 1 or 2"
        )
    if not is_installed():
        raise UserError(
            "the workers of a Ray cluster (--ray) need the package ray, which is not installed\n"
            "  what to do: pip install 'syno[ray]' on all machines, or start the workers without "
            "Ray: --jobs 0 here, and `syno worker` on each machine"
        )
