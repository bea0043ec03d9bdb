"""`syno tune --clear` deletes what tasks wrote, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from syno import UserError
from syno.runs.file_lock import locked
from syno.tune import TuningTask, read_grid, tasks_of
from syno.tune.results import FAILED, TaskFiles, TaskResult, stored

GRID = {
    "targets": [{"name": "here", "prefix": "out"}],
    "operators": ["conv2d"],
    "layers": ["8x8"],
    "back_ends": ["cpp"],
    "baseline": False,
}


def task(folder: Path) -> TuningTask:
    path = folder / "grid.json"
    path.write_text(json.dumps(GRID))
    (found,) = tasks_of(read_grid(path))
    return found


def filled(folder: Path) -> TaskFiles:
    """All files of a task."""
    results = TaskFiles(task(folder))
    with results.held():
        tvm = results.tvm_folder("8x8")
        (tvm / "logs").mkdir(parents=True)
        for name in ("database_workload.json", "database_tuning_record.json", "messages.txt"):
            (tvm / name).touch()
        (tvm / "logs" / "task_0.log").touch()
        (results.folder / "layers").mkdir()
        (results.folder / "layers" / "8x8.json").write_text("{}")
        results.write(TaskResult(results.task.key, results.task.as_json(), FAILED, "a reason"))
    return results


def everything(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_all_that_a_task_wrote_is_deleted(tmp_path: Path) -> None:
    results = filled(tmp_path)
    assert stored([results.task]) == [results.task]
    assert results.remove()
    assert not results.folder.exists()
    assert not stored([results.task])


def test_what_others_wrote_stays(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    (foreign / "logs").mkdir(parents=True)
    for name in ("database_x.json", "logs/a.log", "8x8.json"):
        (foreign / name).write_text("mine")
    results = filled(tmp_path)
    mine = ["notes.txt", "layers/notes.txt", "tvm/8x8/weights.bin", "tvm/8x8/logs/notes.txt"]
    for name in mine:
        (results.folder / name).write_text("mine")
    (results.folder / "tvm" / "link").symlink_to(foreign)
    (results.folder / "layers" / "link.json").symlink_to(foreign / "8x8.json")
    before = everything(foreign)
    assert not results.remove()
    left = {name for name in everything(results.folder) if (results.folder / name).is_file()}
    assert left >= set(mine)
    assert not any("database" in name and "link" not in name for name in left)
    assert everything(foreign) == before
    assert not stored([results.task])


def test_a_folder_with_files_of_these_names_is_not_one_of_a_task(tmp_path: Path) -> None:
    found = task(tmp_path)
    found.folder.mkdir(parents=True)
    for content in ("{}", "[]", '{"version": "2.0.0", "tasks": []}', "no JSON"):
        (found.folder / "task.json").write_text(content)
        assert stored([found]) == []


def test_a_folder_that_is_a_link_is_kept(tmp_path: Path) -> None:
    other = filled(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    other.folder.rename(elsewhere)
    other.folder.symlink_to(elsewhere)
    assert not other.remove()
    assert other.folder.is_symlink()


def test_results_that_another_process_makes_are_not_deleted(tmp_path: Path) -> None:
    results = filled(tmp_path)
    before = everything(results.folder)
    with locked(results.folder / "lock"), pytest.raises(UserError, match="another process works"):
        results.remove()
    assert everything(results.folder) == before


def test_damaged_results_are_made_again(tmp_path: Path) -> None:
    results = filled(tmp_path)
    path = results.folder / "result.json"
    whole = json.loads(path.read_text())
    assert results.read() is not None
    for name in whole:
        for value in (None, 1, "x", [], {}, [1], [{}]):
            if type(value) is type(whole[name]) and value != [1] and value != [{}]:
                continue
            path.write_text(json.dumps({**whole, name: value}))
            if name != "seconds" or value != 1:
                assert results.read() is None, (name, value)
    path.write_text("[" * 100_000)
    assert results.read() is None
    for row in ({}, {"row": {}}, {"row": 1, "seconds": 1.0}, {"row": None}):
        layer = results.folder / "layers" / "8x8.json"
        layer.write_text(json.dumps({"key": results.task.key, **row}))
        assert not results.journal(["8x8"]).done
