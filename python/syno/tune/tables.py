"""Tasks and their results as tables."""

from __future__ import annotations

from collections.abc import Sequence

from syno._util import numbers as fmt
from syno._util.tables import Table
from syno.tune.results import DONE, TaskFiles, TaskResult
from syno.tune.tasks import ORIGINAL, TuningTask

_OPEN, _BEGUN = "to do", "begun"


def tasks_table(tasks: Sequence[TuningTask]) -> Table:
    """The tasks and what has become of them so far."""
    return Table.of(
        tasks,
        ("target", lambda task: task.target),
        ("in", lambda task: task.place),
        ("operator", lambda task: task.operator),
        ("back end", lambda task: task.back_end),
        ("state", state),
        ("remark~", lambda task: obstacle(task).partition("\n")[0]),
        ("folder~?", lambda task: str(task.folder)),
    ).without_empty()


def obstacle(task: TuningTask) -> str:
    """Why a task cannot be done here; empty where nothing is known against it.

    Devices of a tracker are not asked.
    """
    from syno.tune import back_ends

    return task.problem or ("" if task.tracker is not None else back_ends.problem(task))


def state(task: TuningTask) -> str:
    """Whether a task is done, failed, begun or to do."""
    results = TaskFiles(task)
    found = results.read()
    if found is not None:
        return found.status
    return _BEGUN if results.is_there() else _OPEN


def results_table(results: Sequence[TaskResult]) -> Table:
    """Sums over the layers, with the speed-up over the best original on the same target."""
    best = _best_originals(results)

    def over(result: TaskResult) -> str:
        original = best.get(_place(result))
        if original is None or result.median_ms is None:
            return ""
        return fmt.ratio(original / result.median_ms)

    return Table.of(
        [result for result in results if result.status == DONE],
        ("target", lambda result: str(result.task["target"])),
        ("in", lambda result: str(result.task["place"])),
        ("operator", lambda result: str(result.task["operator"])),
        ("back end", lambda result: str(result.task["back_end"])),
        ("median ms>", lambda result: _ms(result.median_ms)),
        ("over the best original>", over),
        ("layers>", lambda result: str(sum(row.count for row in result.rows))),
        ("kept>?", lambda result: str(sum(row.count for row in result.rows if row.kept))),
        ("fastest form~?", _forms),
    ).without_empty()


def layers_table(result: TaskResult) -> Table:
    """The layers of one task."""
    return Table.of(
        result.rows,
        ("layer", lambda row: row.layer),
        ("times>", lambda row: str(row.count)),
        ("form", lambda row: "original" if row.kept else row.form.partition(":")[0]),
        ("median ms>", lambda row: _ms(row.median_ms)),
        ("best ms>", lambda row: _ms(row.best_ms)),
        ("roofline>", lambda row: fmt.percent(row.roofline, 0) if row.roofline else ""),
        ("outputs checked>?", lambda row: fmt.count(row.outputs)),
    )


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _place(result: TaskResult) -> tuple[object, object]:
    return result.task["target"], result.task["place"]


def _best_originals(results: Sequence[TaskResult]) -> dict[tuple[object, object], float]:
    """By target and place, the time of the original layers in their fastest back end."""
    found: dict[tuple[object, object], float] = {}
    for result in results:
        time = result.median_ms
        if result.task["operator"] == ORIGINAL and time is not None:
            found[_place(result)] = min(time, found.get(_place(result), time))
    return found


def _forms(result: TaskResult) -> str:
    return ", ".join(dict.fromkeys(row.form.partition(":")[0] for row in result.rows))
