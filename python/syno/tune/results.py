"""Results of tasks as files: a task that has its result is done, and is not done again.

FOLDER/task.json       the task
FOLDER/result.json     its result, written in one step at the end
FOLDER/layers/*.json   a file for each layer, with which a killed task is resumed
FOLDER/tvm/            what MetaSchedule keeps of each layer
FOLDER/lock            held by the process that works on the task
FOLDER/log.jsonl       a line for each beginning and each end
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from syno._util.checks import from_file, number, parsed_json
from syno._util.errors import UserError
from syno._util.json_record import json_record
from syno._util.json_types import Json
from syno.runs.file_lock import locked, locked_now
from syno.runs.files import write_json
from syno.runs.journal import Journal, Lines
from syno.tune.tasks import TuningTask

DONE, FAILED = "done", "failed"
_FORMAT = 1
_TASK, _RESULT, _LAYERS, _LOCK, _LOG = "task.json", "result.json", "layers", "lock", "log.jsonl"
# All that a task writes, and the folders of it, the innermost first.
_WRITTEN = (
    _RESULT,
    f"{_LAYERS}/*.json",
    "tvm/*/database_*.json",
    "tvm/*/messages.txt",
    "tvm/*/logs/*.log",
    _LOG,
    _TASK,
    _LOCK,
    ".*.syno-*",  # what a killed process was writing (files.py)
)
_FOLDERS = ("tvm/*/logs", "tvm/*", "tvm", _LAYERS)


@dataclass(frozen=True)
class TunedLayer:
    """The fastest form of an operator in one kind of layer.

    layer: its name; count: how often the model has it; kept: whether the original layer is there
    because the operator does not fit. form: what was the fastest, such as "plan 2"; forms: the
    median of each form in milliseconds. best_ms, median_ms, spread_ms: of that form. pool_ms: what
    a slot computes beside the operator: the pooling where it has a stride of 2, or the way to the
    phases of a dilation. macs: of its plan, 0 where unknown; roofline: the share of what the
    machine can do, None for code of others. outputs: how many outputs were compared with the
    interpreter. control_spread: how much a fixed computation varied.
    """

    layer: str
    count: int
    kept: bool
    form: str
    forms: Mapping[str, float]
    best_ms: float
    median_ms: float
    spread_ms: float
    pool_ms: float
    macs: int
    roofline: float | None
    outputs: int
    control_spread: float


@dataclass(frozen=True)
class TaskResult:
    """What became of a task.

    status: "done" or "failed"; reason: why it failed; rows: a row for each kind of layer; seconds:
    how long it took, without interruptions; environment: device, clocks, threads and versions.
    """

    key: str
    task: Mapping[str, Json]
    status: str
    reason: str = ""
    rows: tuple[TunedLayer, ...] = ()
    seconds: float = 0.0
    environment: Mapping[str, Json] = field(default_factory=dict)

    @property
    def median_ms(self) -> float | None:
        """The sum of the medians over all layers of the model; None if it failed."""
        if self.status != DONE:
            return None
        return sum(row.count * (row.median_ms + row.pool_ms) for row in self.rows)

    @property
    def macs(self) -> int:
        """The sum over all layers of which the MACs are known."""
        return sum(row.count * row.macs for row in self.rows)


@dataclass(frozen=True)
class _Stored:
    """A `TaskResult` as its file has it."""

    key: str
    task: Mapping[str, object]
    status: str
    reason: str
    rows: tuple[object, ...]
    seconds: float
    environment: Mapping[str, object]


class TaskFiles:
    """The files of one task."""

    def __init__(self, task: TuningTask) -> None:
        self.task = task
        self.folder = task.folder

    def read(self) -> TaskResult | None:
        """The result; None where there is none, or one of other settings."""
        found = _content(self.folder / _RESULT)
        if found is None or found.get("format") != _FORMAT or found.get("key") != self.task.key:
            return None
        fields: dict[str, object] = {k: v for k, v in found.items() if k != "format"}
        try:
            result = json_record(_Stored, "the result", fields)
            rows = tuple(json_record(TunedLayer, "a row of the result", row) for row in result.rows)
        except UserError:
            return None  # damaged: it is made again
        return TaskResult(**{**vars(result), "rows": rows})

    def write(self, result: TaskResult) -> None:
        """Write the result in one step, and note the end in the log."""
        self._write(_RESULT, {"format": _FORMAT, **asdict(result)})
        self.note(result.status)

    def journal(self, layers: Iterable[str]) -> Journal[str, tuple[TunedLayer, float]]:
        """The rows of layers that are done, with the seconds that each took."""
        found = {layer: self._row(layer) for layer in layers}
        return Journal({k: row for k, row in found.items() if row is not None}, self._keep)

    def _row(self, name: str) -> tuple[TunedLayer, float] | None:
        found = _content(self._layer(name))
        if found is None or found.get("key") != self.task.key:
            return None
        try:
            row = json_record(TunedLayer, "the row of a layer", found.get("row"))
            return row, number("its seconds", found.get("seconds"))
        except UserError:
            return None  # damaged: it is made again

    def _keep(self, name: str, done: tuple[TunedLayer, float]) -> None:
        path = self._layer(name)
        content = {"key": self.task.key, "row": asdict(done[0]), "seconds": done[1]}
        self._write(str(path.relative_to(self.folder)), content)

    def tvm_folder(self, layer: str) -> Path:
        """The folder of MetaSchedule for a layer."""
        return self.folder / "tvm" / _file_name(layer)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the task: other processes that want it wait."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with locked(self.folder / _LOCK):
            if _content(self.folder / _TASK) != self.task.as_json():
                self._write(_TASK, self.task.as_json())
            yield

    def note(self, event: str) -> None:
        """Add a line to the log."""
        with Lines(self.folder / _LOG) as log:
            log.add({"event": event, "at": time.time(), "process": os.getpid()})

    def is_there(self) -> bool:
        """Whether the folder has files of a task."""
        found = _content(self.folder / _TASK)
        return found is not None and found.keys() >= self.task.as_json().keys()

    def remove(self) -> bool:
        """Delete the files of the task and the folders that are empty then; whether all are gone.

        Other files, and what links lead to, stay.

        Raises:
            UserError: another process works on the task, or a file cannot be deleted.
        """
        words = f"works on {self.task.name}", "wait for it, or stop it"
        with (
            from_file("cannot delete the results in", self.folder),
            locked_now(self.folder / _LOCK, *words),
        ):
            for pattern in _WRITTEN:
                for path in self.folder.glob(pattern):
                    if (
                        path.resolve().parent
                        == self.folder.resolve() / path.relative_to(self.folder).parent
                    ):
                        path.unlink()
        folders = [path for pattern in _FOLDERS for path in self.folder.glob(pattern)]
        for each in (*folders, self.folder):
            if not each.is_symlink():
                with contextlib.suppress(OSError):  # something of others is in it
                    each.rmdir()
        return not self.folder.exists()

    def _layer(self, name: str) -> Path:
        return self.folder / _LAYERS / f"{_file_name(name)}.json"

    def _write(self, name: str, content: Mapping[str, object]) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, content)


def stored(tasks: Sequence[TuningTask]) -> list[TuningTask]:
    """The tasks with files: results, or what an interruption left."""
    return [task for task in tasks if TaskFiles(task).is_there()]


def _content(path: Path) -> dict[str, Json] | None:
    """A JSON object from a file; None where it is not there, or is damaged: it is made again."""
    try:
        found = parsed_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _file_name(layer: str) -> str:
    return layer.replace("/", "-")
