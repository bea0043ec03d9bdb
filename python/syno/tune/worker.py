"""The process of one task: `main`, with the task as JSON on standard input.

It prints a line of JSON for each step. It is killed when the process that started it ends; what it
has finished by then stays.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable

import torch

from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno._util.torch_threads import torch_threads
from syno.runs import helper_process, processes
from syno.tune.machine import described_machine
from syno.tune.results import DONE, FAILED, TaskFiles, TaskResult, TunedLayer
from syno.tune.tasks import TuningTask

Measured = Callable[[Callable[[str], None]], TunedLayer]


def main() -> None:
    """Do the task, unless it is done; write its result."""
    asked, answers = helper_process.read_orders(), helper_process.answers()
    processes.die_with(asked["parent"])

    def told(what: str) -> None:
        answers.write(json.dumps({"what": what}) + "\n")
        answers.flush()

    results = TaskFiles(TuningTask.from_json(asked["task"]))
    with results.held():
        found = results.read()
        if found is None or (asked["retry"] and found.status == FAILED):
            results.note("begun")
            results.write(_done(results, told))


def _done(results: TaskFiles, told: Callable[[str], None]) -> TaskResult:
    from syno.tune import back_ends

    task = results.task
    environment = _environment(task)

    def failed(reason: str) -> TaskResult:
        return TaskResult(task.key, task.as_json(), FAILED, reason, environment=environment)

    reason = task.problem or back_ends.problem(task)
    if reason:
        return failed(reason)
    rows: list[TunedLayer] = []
    total = 0.0
    try:
        with torch_threads(task.threads), torch.inference_mode():
            parts = _parts(results)
            journal = results.journal(parts)
            for number, (layer, measured) in enumerate(parts.items(), 1):
                place = f"{layer} ({number} of {len(parts)})"
                row, seconds = journal.once(layer, functools.partial(_timed, measured, told, place))
                rows.append(row)
                total += seconds
    except UserError as error:
        return failed(str(error))
    except Exception as error:  # of a compiler or a tuner, which raises whatever it likes
        return failed(f"{type(error).__name__}: {error}")
    return TaskResult(
        task.key, task.as_json(), DONE, rows=tuple(rows), seconds=total, environment=environment
    )


def _timed(measured: Measured, told: Callable[[str], None], place: str) -> tuple[TunedLayer, float]:
    """The row of a part, and the seconds that it took."""
    began = time.monotonic()
    row = measured(lambda what: told(f"{place}: {what}"))
    return row, time.monotonic() - began


def _parts(results: TaskFiles) -> dict[str, Measured]:
    """What measures each part of a task: its kinds of layers, or the whole network."""
    from syno.tune import back_ends, networks
    from syno.tune.subjects import subjects_of

    task = results.task
    if task.whole:
        folder = results.tvm_folder(task.place)
        return {task.place: functools.partial(networks.measured, task, folder)}
    return {
        subject.layer: functools.partial(
            back_ends.measured, task, subject, results.tvm_folder(subject.layer)
        )
        for subject in subjects_of(task)
    }


def _environment(task: TuningTask) -> JsonObject:
    """The device, its clock, threads and versions."""
    found = described_machine(task.threads, task.device)
    if task.tracker is None:
        return found
    for own in ("compiler", "clocks_mhz"):  # of this machine
        found.pop(own, None)
    return found | _of_device(task)


def _of_device(task: TuningTask) -> JsonObject:
    """What the tracker says of the device of a task; its key where the tracker does not answer."""
    from syno.tune import tvm_remote

    try:
        device, *others = tvm_remote.devices(task)
    except UserError:
        return {"device": task.rpc_key}
    names = {each.name for each in (device, *others)}
    return {
        "device": f"{task.rpc_key}: {', '.join(sorted(names - {''})) or 'unknown'}",
        "platform": device.machine,
        "libraries": {"apache-tvm": device.tvm, "syno": device.syno},
    }
