"""Tasks of a grid: their results, failures, kills, and the command."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from syno.cli.main import cli
from syno.codegen import emitters
from syno.tune import TuningTask, run_grid, single_grid, tasks_of
from syno.tune.back_ends import problem
from syno.tune.results import TaskFiles
from syno.tune.subjects import subjects_of
from syno.tune.tables import layers_table, results_table, state, tasks_table


def tasks(folder: Path, *back_ends: str, trials: int = 1, **more: object) -> list[TuningTask]:
    places = {"layers": ["8x8"], **more}
    return tasks_of(
        single_grid(
            ["depthwise-separable"],
            out=folder,
            back_ends=back_ends,
            rounds=20,
            plans=1,
            trials=trials,
            **places,  # type: ignore[arg-type]
        )
    )


@pytest.mark.slow
def test_every_back_end_of_the_cpu_gives_a_checked_time(tmp_path: Path) -> None:
    run = run_grid(tasks(tmp_path, "eager", "cpp"))
    assert run.failures == []
    assert run.new == len(run.results) == 4
    for result in run.results:
        (row,) = result.rows
        assert 0 < row.best_ms <= row.median_ms == result.median_ms
        assert row.form in row.forms
        assert result.environment["device"] and result.environment["libraries"]
        if result.task["back_end"] == "cpp":
            assert row.outputs > 0 and row.macs > 0
            assert row.roofline is not None and 0 < row.roofline < 1.1
    assert len(results_table(run.results).rows) == 4
    assert layers_table(run.results[0]).rows[0][0] == "8x8"
    again = run_grid(tasks(tmp_path, "eager", "cpp"))
    assert again.new == 0
    assert again.results == run.results


@pytest.mark.slow
def test_all_layers_of_a_model_count(tmp_path: Path) -> None:
    run = run_grid(tasks(tmp_path, "cpp", layers=[], models=["resnet-small"], size=16))
    assert run.failures == []
    original, operator = run.results
    assert sum(row.count for row in original.rows) == sum(row.count for row in operator.rows)
    assert original.median_ms == pytest.approx(
        sum(row.count * (row.median_ms + row.pool_ms) for row in original.rows)
    )
    assert operator.macs < original.macs


def test_the_pooling_before_an_operator_in_a_slot_of_stride_2_counts(tmp_path: Path) -> None:
    original, operator = tasks(tmp_path, "cpp", layers=[], models=["resnet18"], size=64)
    assert all(each.moves is None for each in subjects_of(original))
    found = subjects_of(operator)
    assert any(each.moves is not None for each in found)
    assert all(each.computation()[0].text == operator.text for each in found if not each.kept)
    strided = next(each for each in subjects_of(original) if each.original.stride == (2, 2))
    layer, sizes = strided.computation()
    assert layer.shapes(sizes).input[2] == 2 * layer.shapes(sizes).output[2]


@pytest.mark.slow
@pytest.mark.skipif(
    emitters.get("tvm").available() is not None, reason="the package tvm is not installed"
)
def test_tvm_goes_on_with_the_trials_of_its_database(tmp_path: Path) -> None:
    (task, *_) = tasks(tmp_path, "tvm", baseline=False, trials=4)
    (first,) = run_grid([task]).results
    assert first.status == "done", first.reason
    assert first.rows[0].form == "4 trials"
    assert first.rows[0].outputs > 0
    folder = TaskFiles(task).tvm_folder("8x8")
    (records,) = folder.glob("*tuning_record*.json")
    before = records.read_text()
    (longer,) = run_grid([dataclasses.replace(task, trials=6)]).results
    assert longer.rows[0].form == "6 trials"
    assert records.read_text().startswith(before)
    assert len(records.read_text().splitlines()) >= 6


@pytest.mark.slow
@pytest.mark.skipif(
    emitters.get("tvm").available() is not None, reason="the package tvm is not installed"
)
def test_a_whole_network_is_tuned_by_tvm_and_goes_on_with_its_database(tmp_path: Path) -> None:
    from syno.inference.relax.build import databases_below
    from syno.inference.relax.network import compile_network
    from syno.tune.networks import network_of

    places = {"layers": [], "networks": ["cnn-small"], "size": 8, "baseline": False}
    (task,) = tasks(tmp_path, "tvm", trials=1, **places)
    (first,) = run_grid([task]).results
    assert first.status == "done", first.reason
    (row,) = first.rows
    assert (row.layer, row.form) == ("cnn-small-network", "1 trials of each function")
    assert row.outputs == 10 and row.median_ms > 0
    (database,) = databases_below(tmp_path)
    records = (database / "database_tuning_record.json").read_text()
    # As after a kill behind the last trial: no schedule is measured again.
    shutil.rmtree(task.folder / "layers")
    (task.folder / "result.json").unlink()
    (again,) = run_grid([task]).results
    assert again.status == "done", again.reason
    assert (database / "database_tuning_record.json").read_text() == records
    net, x = network_of(task)
    compiled = compile_network(net, x, databases=[database])
    assert 0 < compiled.tuned <= compiled.functions
    with torch.no_grad():
        expected = net(x)
    assert (torch.from_numpy(compiled(x.numpy())) - expected).abs().max() <= 1e-4


def test_whole_networks_say_where_they_are_not_tuned(tmp_path: Path) -> None:
    (task,) = tasks(tmp_path, "triton", layers=[], networks=["cnn-small"], baseline=False)
    assert problem(task) == "triton does not run whole networks"
    there = dataclasses.replace(task, tracker="127.0.0.1:1", rpc_key="a", back_end="tvm")
    assert "leave out --tracker" in problem(there)
    gpu = dataclasses.replace(task, back_end="eager", device="cuda")
    assert "timed on the CPU, and not on 'cuda'" in problem(gpu)


@pytest.mark.slow
def test_a_whole_network_is_timed_in_the_engine_of_its_back_end(tmp_path: Path) -> None:
    places = {"layers": [], "networks": ["cnn-small"], "size": 8}
    run = run_grid(tasks(tmp_path, "eager", "cpp", **places))
    assert run.failures == []
    assert [result.rows[0].form for result in run.results] == ["eager", "syno-cpp"] * 2
    assert len(results_table(run.results).rows) == 4


@pytest.mark.slow
def test_a_failing_task_is_recorded_and_does_not_stop_the_grid(tmp_path: Path) -> None:
    first, last = tasks(tmp_path, "eager", "cpp", baseline=False)
    broken = [
        dataclasses.replace(first, folder=tmp_path / "a", problem="there is no operator 'x'"),
        dataclasses.replace(first, folder=tmp_path / "b", text="syno operator of another kind"),
        dataclasses.replace(first, folder=tmp_path / "c", device="cuda", back_end="triton"),
        dataclasses.replace(first, folder=tmp_path / "d", tvm_target="llvm -mtriple=mips-linux"),
    ]
    run = run_grid([*broken, last])
    assert [result.status for result in run.results] == ["failed"] * 4 + ["done"]
    reasons = [result.reason for result in run.failures]
    assert reasons[0] == "there is no operator 'x'"
    assert "syno operator" in reasons[1]
    assert reasons[2]
    assert "the target is a mips" in reasons[3]
    assert run_grid([*broken, last]).new == 0
    assert run_grid([*broken, last], retry=True).new == 4
    # What was repaired is another task.
    assert run_grid([first]).results[0].status == "done"


def test_a_task_whose_process_is_killed_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = tasks(tmp_path, "eager", baseline=False)
    dead = [
        sys.executable,
        "-c",
        "import os, sys; print('gone', file=sys.stderr); os.kill(os.getpid(), 11)",
    ]
    monkeypatch.setattr("syno.runs.helper_process.command", lambda module: dead)
    (result,) = run_grid([task]).results
    assert result.status == "failed"
    assert "by signal 11" in result.reason and "gone" in result.reason


@pytest.mark.slow
def test_damaged_files_are_made_again(tmp_path: Path) -> None:
    (task,) = tasks(tmp_path, "cpp", baseline=False)
    run_grid([task])
    (task.folder / "result.json").write_text("{")
    (layer,) = (task.folder / "layers").iterdir()
    assert state(task) == "begun"
    (before,) = run_grid([task]).results  # from the layer
    layer.write_text("[]")
    (task.folder / "result.json").unlink()
    (after,) = run_grid([task]).results
    assert before.status == after.status == "done"
    assert before.rows != after.rows


@pytest.mark.slow
def test_a_grid_that_is_killed_three_times_does_each_task_once(tmp_path: Path) -> None:
    content = {
        "targets": [{"name": "here", "threads": 1}],
        "operators": ["depthwise-separable"],
        "layers": ["8x8", "16x4"],
        "back_ends": ["cpp"],
        "plans": 1,
        "trials": 1,
        "rounds": 20,
    }
    path = tmp_path / "grid.json"
    path.write_text(json.dumps(content))
    command = [sys.executable, "-m", "syno", "tune", "--config", str(path)]
    results: dict[Path, tuple[int, bytes]] = {}
    for kill in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _wait_for(tmp_path, kill + 1, process)
        time.sleep(0.5 * kill)
        process.send_signal(signal.SIGKILL)
        process.wait()
        results |= {each: _identity(each) for each in tmp_path.rglob("result.json")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = list(tmp_path.rglob("result.json"))
    assert len(found) == 4
    # What was done before a kill was not touched again.
    assert {each: _identity(each) for each in results} == results
    for each in found:
        log = each.with_name("log.jsonl").read_text().splitlines()
        events = [json.loads(line)["event"] for line in log]
        assert events.count("done") == 1 and events.count("begun") >= 1
    assert "depthwise-separable" in done.stdout


def _identity(path: Path) -> tuple[int, bytes]:
    return path.stat().st_mtime_ns, path.read_bytes()


def _wait_for(folder: Path, begun: int, process: subprocess.Popen[bytes]) -> None:
    """Until so many tasks were begun."""
    deadline = time.monotonic() + 300
    while len(list(folder.rglob("task.json"))) < begun and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)


# --- the command ----------------------------------------------------------------------------------


def invoked(*words: str, given: str | None = None) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["tune", *words], input=given)
    return result.exit_code, result.output


@pytest.mark.slow
def test_the_command_shows_runs_and_clears(tmp_path: Path) -> None:
    words = ["depthwise-separable", "--layer", "8x8", "--back-ends", "cpp", "--rounds", "20"]
    words += ["--plans", "1", "--trials", "1", "--no-baseline", "--out", str(tmp_path / "out")]
    code, text = invoked(*words, "--dry-run")
    assert code == 0 and "to do" in text and "1 tasks" in text
    assert not (tmp_path / "out").exists()
    code, text = invoked(*words)
    assert code == 0 and "plan 1" in text
    code, text = invoked(*words, "--dry-run", "--json")
    assert json.loads(text)[0]["state"] == "done"
    code, text = invoked(*words, "--clear", "--dry-run")
    assert "--clear would delete the results of 1 tasks" in text
    code, text = invoked(*words, "--clear", given="n\n")
    assert code == 2 and "nothing was deleted" in text
    assert list(tmp_path.rglob("result.json"))
    code, text = invoked(*words, "--clear", "--yes", "--json")
    assert code == 0 and json.loads(text[text.index("[") :])[0]["status"] == "done"


def test_a_dry_run_says_which_targets_this_machine_cannot_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    targets = [
        {"name": "here", "device": "cpu"},
        {"name": "gpu", "device": "cuda"},
        {"name": "phone", "device": "cpu", "target": "llvm -mtriple=no-such-processor-linux-gnu"},
    ]
    grid = {"targets": targets, "operators": ["conv1x1"], "layers": ["8x8"]}
    path = tmp_path / "grid.json"
    path.write_text(json.dumps(grid | {"back_ends": ["eager"], "baseline": False}))
    code, text = invoked("--config", str(path), "--dry-run", "--json")
    assert code == 0
    obstacles = {task["target"]: task["obstacle"] for task in json.loads(text)}
    assert obstacles["here"] == ""
    assert "PyTorch finds no GPU on this machine" in obstacles["gpu"]
    assert "the target is a no" in obstacles["phone"]
    shown = invoked("--config", str(path), "--dry-run")[1]
    assert "3 tasks, 2 of which this machine cannot do" in shown
    assert "finds no GPU" in " ".join(shown.split())


def test_mistakes_of_the_command_are_named(tmp_path: Path) -> None:
    assert "nothing to tune" in invoked()[1]
    assert "--layer or --network" in invoked("--network", "cnn-small", "--config", "a.json")[1]
    assert "without a place" in invoked("conv2d")[1]
    assert "is no layer" in invoked("conv2d", "--layer", "8")[1]
    assert "did you mean: tvm" in invoked("conv2d", "--layer", "8x8", "--back-ends", "tvn")[1]
    assert "of its own" in invoked("conv2d", "--config", "grid.json")[1]
    assert "cannot read the grid" in invoked("--config", str(tmp_path / "none.json"))[1]


def test_tasks_as_a_table(tmp_path: Path) -> None:
    table = tasks_table(tasks(tmp_path, "cpp"))
    assert table.names()[:5] == ["target", "in", "operator", "back end", "state"]
    assert [row[4] for row in table.rows] == ["to do", "to do"]
