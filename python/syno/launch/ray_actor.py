"""A worker of a Ray cluster, on its node: an actor that starts our plain worker and watches it.

The worker itself is a process of its own, the same as on one machine: it takes work from the store,
and ends when the actor does. All that the actor takes and returns is text in JSON, errors included,
so that whoever calls it unpickles nothing but text.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import ParamSpec

from syno import _core
from syno._util.json_types import Json
from syno.launch import child

Given = ParamSpec("Given")
_MOST_LINES = 100  # that wait to be looked at
_LONGEST_LINE = 1000  # characters
_READ_S = 1.0  # for the last lines: processes that the worker has started may hold the other end


def identity() -> dict[str, Json]:
    """Return the versions that must be the same on all machines, and the name of this one."""
    from syno.space.rules import rule_set

    return {
        "host": platform.node(),
        "syno": _core.__version__,
        "rules": str(rule_set().version),
        "python": ".".join(map(str, sys.version_info[:2])),
    }


def _as_json(method: Callable[Given, dict[str, Json]]) -> Callable[Given, str]:
    """Let a method return JSON, and its exceptions as a text, too."""

    @wraps(method)
    def answered(*given: Given.args, **named: Given.kwargs) -> str:
        try:
            found = method(*given, **named)
        except Exception as error:
            traceback.print_exc()  # into the log of the node
            found = {"failure": f"{type(error).__name__}: {error}"}
        return json.dumps(found)

    return answered


class RayWorker:
    """One worker on a node."""

    module = "syno.study.worker_process"

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)

    @_as_json
    def hello(self) -> dict[str, Json]:
        """Return the versions of this node, and its id in the cluster."""
        return identity() | {"node": self._node(), "actor": os.getpid()}

    @_as_json
    def begin(self, given: str) -> dict[str, Json]:
        """Start the process of the worker.

        given: its orders with the number of `threads`, and the `folder` of the search, which is the
            current folder of the worker if this machine has it.
        """
        orders = json.loads(given)
        threads, folder = int(orders.pop("threads")), str(orders.pop("folder"))
        self._process = child.start(
            self.module,
            orders | {"cores": []},  # Ray gives it a number of cores, and not certain ones
            threads,
            folder=folder if Path(folder).is_dir() else None,
            keep_errors=True,
        )
        self._reader.start()
        return {"process": self._process.pid}

    @_as_json
    def look(self) -> dict[str, Json]:
        """Return the lines since the last time, and the exit code of a worker that has ended."""
        assert self._process is not None
        code = self._process.poll()
        found: dict[str, Json] = {"code": code, "said": ""}
        if code is not None:
            self._reader.join(_READ_S)
            found["said"], found["code"] = child.collect(self._process)
        count = len(self._lines)
        found["lines"] = [self._lines.popleft() for _ in range(count)]
        return found

    @_as_json
    def end(self) -> dict[str, Json]:
        """Ask the worker to give back what it has, and to end."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
        return {}

    def _read(self) -> None:
        """Keep the lines that the worker writes, and write them into the log of the node."""
        assert self._process is not None
        assert self._process.stderr is not None
        for line in self._process.stderr:
            sys.stderr.write(line)
            if line.strip():
                self._lines.append(line.rstrip()[:_LONGEST_LINE])

    def _node(self) -> str:
        import ray

        return str(ray.get_runtime_context().get_node_id())
