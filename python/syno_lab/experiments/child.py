"""A part of an experiment in a process of its own, with limits of time and memory."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from syno.runs.helper_process import answers, read_orders, start
from syno.runs.processes import (
    die_with,
    kill_tree,
    limit_allocations,
    prefer_in_shortage,
    signal_name,
)


@dataclass(frozen=True)
class ProcessLimits:
    """Of a process. memory: in bytes; seconds: after which it is ended."""

    memory: int = 8 << 30
    seconds: float = 900.0


def answer_of(
    module: str, orders: Mapping[str, object], limits: ProcessLimits
) -> tuple[Any, str | None]:
    """What a process answers that runs `main()` of a module, and why there is no answer.

    The module's `main` calls `obey`. orders: what its work gets, as JSON can hold it.
    """
    given = {**orders, "memory": limits.memory, "parent": os.getpid()}
    process = start(module, given, stderr=subprocess.DEVNULL)
    try:
        answer, _ = process.communicate(timeout=limits.seconds)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.communicate()
        return None, f"it took more than {limits.seconds:.0f} s"
    if process.returncode:
        code = process.returncode
        how = signal_name(-code) if code < 0 else f"exit code {code}"
        return None, f"its process ended with {how}"
    return json.loads(answer), None


def obey(work: Callable[[Any], object]) -> None:
    """Call `work` with the orders of the process that started this one, and answer its result."""
    orders = read_orders()
    die_with(orders["parent"])
    prefer_in_shortage()
    limit_allocations(orders["memory"])
    out = answers()
    print(json.dumps(work(orders)), file=out, flush=True)
