"""The tasks of a grid, one after the other, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from syno._util.errors import UserError
from syno.runs import helper_process
from syno.tune.results import FAILED, TaskFiles, TaskResult
from syno.tune.tasks import TuningTask

# Characters of what a process says at its end that are kept.
_LAST_WORDS = 2000


@dataclass
class GridRun:
    """The results of all tasks, in order; new: how many were done in this run."""

    results: list[TaskResult] = field(default_factory=list)
    new: int = 0

    @property
    def failures(self) -> list[TaskResult]:
        """The results of tasks that failed."""
        return [result for result in self.results if result.status == FAILED]


def run_grid(
    tasks: Sequence[TuningTask],
    *,
    retry: bool = False,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> GridRun:
    """Do all tasks that have no result yet.

    Each runs in a process of its own. A task that fails, crashes or cannot run here gets a result
    with the reason, and the next one begins. An interrupted task is resumed by the next call.

    Args:
        tasks: from `tasks_of`.
        retry: do tasks again that failed in an earlier run.
        progress: called with (finished tasks, all tasks that were to be done, description).

    Raises:
        UserError: two tasks have the same folder, or it cannot be written.
    """
    check_folders(tasks)
    waiting = [task for task in tasks if _is_open(task, retry)]
    for number, task in enumerate(waiting):
        told = _told(progress, number, len(waiting), task)
        told("starting")
        try:
            _work(task, retry, told)
        except OSError as error:
            raise UserError(
                f"cannot write results to '{task.folder}': {error}\n"
                "  expected: a folder that can be written, with enough space"
            ) from error
    progress(len(waiting), len(waiting), "done")
    found = [TaskFiles(task).read() for task in tasks]
    return GridRun([result for result in found if result is not None], len(waiting))


def check_folders(tasks: Sequence[TuningTask]) -> None:
    """UserError where two tasks would write the same files."""
    seen: dict[str, TuningTask] = {}
    for task in tasks:
        other = seen.setdefault(str(task.folder.resolve()), task)
        if other is not task:
            raise UserError(
                f"two tasks have the same folder '{task.folder}'\n"
                f"  {other.name}\n  {task.name}\n"
                "  what to do: give targets a 'prefix' of their own, and name operators once"
            )


def _is_open(task: TuningTask, retry: bool) -> bool:
    found = TaskFiles(task).read()
    return found is None or (retry and found.status == FAILED)


def _told(
    progress: Callable[[int, int, str], None], number: int, total: int, task: TuningTask
) -> Callable[[str], None]:
    return lambda what: progress(number, total, f"{task.name}: {what}")


def _work(task: TuningTask, retry: bool, told: Callable[[str], None]) -> None:
    began = time.monotonic()
    asked = {"task": task.as_json(), "retry": retry, "parent": os.getpid()}
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = helper_process.start(
            "syno.tune.worker",
            asked,
            stderr=errors,
            own_session=False,
            changes={"TVM_NUM_THREADS": str(task.threads), "TVM_BIND_THREADS": "1"},
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                told(json.loads(line)["what"])
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        if code == 0:
            return
        errors.seek(0)
        said = errors.read()[-_LAST_WORDS:].strip()
    _fail(task, code, said, time.monotonic() - began)


def _fail(task: TuningTask, code: int, said: str, seconds: float) -> None:
    """The result of a task whose process ended without one."""
    how = f"with exit code {code}"
    if code < 0:
        how = f"by signal {-code} ({signal.strsignal(-code)})"
    reason = f"its process was ended {how}" + (f"\n{said}" if said else "")
    results = TaskFiles(task)
    with results.held():
        if results.read() is None or _is_open(task, retry=True):
            results.write(TaskResult(task.key, task.as_json(), FAILED, reason, seconds=seconds))
