"""What needs a GPU: trainings, workers that train on one, and Triton's kernels on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
import torch

import syno
from syno.store import Store
from syno.train import fidelity
from syno.tune import run_grid, single_grid, tasks_of

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

QUICK = fidelity("digits").changed(name="quick", images=200, epochs=2)


def results(store: str) -> list:
    with Store.open(store, read_only=True) as opened:
        return list(opened.summary(opened.study()).evaluations)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_operators_are_trained_on_a_gpu_in_each_precision(precision: str, tmp_path: Path) -> None:
    found = syno.train_operators(
        ["conv2d", "grouped"],
        data="digits",
        model_options={"width": 8},
        sizes={"g": 2},
        train=syno.TrainOptions(fidelity=QUICK.changed(precision=precision)),
        baseline=True,
        device="cuda",
        store=str(tmp_path / "runs.db"),
    )
    assert found.ok, [row.reason for row in found.rows]
    for each in results(str(tmp_path / "runs.db")):
        assert each.details["device"] == "cuda"
        assert each.details["peak_bytes"] > 0
        assert each.accuracy > 0.2, "no better than chance"


def test_workers_share_a_gpu(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    found = syno.search(
        "resnet-small",
        "digits",
        model_options={"width": 8},
        train=syno.TrainOptions(fidelity=QUICK),
        evaluations=4,
        jobs=2,
        gpus=True,
        store=store,
    )
    assert len(found.evaluations) >= 4
    good = [each for each in results(store) if each.status == "ok"]
    assert len(good) >= 3, Counter(each.reason for each in results(store))
    assert {each.details["device"] for each in good} == {"cuda"}


def test_a_worker_that_is_killed_on_a_gpu_loses_nothing(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    words = ["search", "--data", "digits", "--model", "resnet-small", "--jobs", "2", "--gpus"]
    more = ["--images", "1000", "--epochs", "6", "--evaluations", "6", "--store", store]
    command = [sys.executable, "-m", "syno", *words, *more]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as search:
        kills, until = 0, time.monotonic() + 300
        while search.poll() is None and time.monotonic() < until:
            time.sleep(4)
            if kills == 3 or not Path(store).exists():
                continue
            with Store.open(store, read_only=True) as opened:
                there = [each for each in opened.workers() if each.is_alive and each.ask]
            if there:
                os.kill(int(there[0].short_name.rsplit(":", 1)[1]), signal.SIGKILL)
                kills += 1
        said = search.communicate()[1]
    assert search.returncode == 0, said[-2000:]
    assert kills > 0
    counted = Counter(each.key for each in results(store) if each.is_evaluated)
    assert len(counted) >= 6 and max(counted.values()) == 1


@pytest.mark.parametrize("back_end", ["eager", "inductor", "triton"])
def test_layers_are_tuned_on_a_gpu(back_end: str, tmp_path: Path) -> None:
    grid = single_grid(
        ["operator-1"],
        out=tmp_path,
        back_ends=[back_end],
        layers=["64x14"],
        device="cuda",
        batch=8,
        rounds=20,
        plans=2,
    )
    run = run_grid(tasks_of(grid))
    assert run.failures == [], [each.reason for each in run.failures]
    for result in run.results:
        assert torch.cuda.get_device_name() == result.environment["device"]
        assert 0 < result.rows[0].best_ms <= result.rows[0].median_ms


def test_a_compiled_training_runs_on_a_gpu(tmp_path: Path) -> None:
    found = syno.train_operators(
        ["conv2d"],
        data="digits",
        model_options={"width": 8},
        train=syno.TrainOptions(fidelity=QUICK.changed(compile=True)),
        device="cuda",
        latency=False,
        isolation=syno.IsolationOptions(isolate=True),
        store=str(tmp_path / "runs.db"),
    )
    assert found.ok, [row.reason for row in found.rows]
