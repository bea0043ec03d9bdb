"""`syno worker`, and the workers in `syno status`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from syno.cli.main import cli
from syno.store import Store, Worker

from .conftest import HERE


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    Store.open(path).close()
    return path


def test_a_worker_without_work_ends_when_it_is_told_to(store: str) -> None:
    result = CliRunner().invoke(cli, ["worker", "--store", store, "--idle", "0"])
    assert (result.exit_code, result.stderr) == (0, "0 trials evaluated\n")
    for jobs in ("1", "2"):
        words = ["worker", "--store", store, "--idle", "0", "--json", "--jobs", jobs]
        assert json.loads(CliRunner().invoke(cli, words).stdout) == {"store": store, "evaluated": 0}
    with Store.open(store, read_only=True) as opened:
        workers = opened.workers()
    assert [worker.is_alive for worker in workers] == [False] * 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--store", "missing.db"], "there is no store 'missing.db'"),
        (["--study", "none", "--idle", "0"], "holds no study"),
        (["--study", "none", "--jobs", "2"], "holds no study"),
        (["--idle", "-1"], "idle (--idle) is a number of seconds, got -1"),
        (["--jobs", "0"], "--jobs"),
        (["--store", "mysql://host/x"], "a store cannot be kept in 'mysql'"),
    ],
)
def test_a_mistake_is_a_message(words: list[str], message: str, store: str) -> None:
    given = words if "--store" in words else ["--store", store, *words]
    result = CliRunner().invoke(cli, ["worker", *given])
    assert result.exit_code == 2
    assert message in result.stderr


def test_without_a_gpu_it_says_so(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = CliRunner().invoke(cli, ["worker", "--store", store, "--gpus"])
    assert result.exit_code == 2
    assert "there is no GPU that PyTorch can use" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "there is no GPU that PyTorch can use (--gpus)"),
        (["--jobs", "2"], "there is no GPU that PyTorch can use (--gpus)"),
        (["--jobs", "0"], "what to do: `syno worker --gpus` where the workers are"),
        (["--ray", "auto"], "what to do: gpus_per_worker (--gpus-per-worker)"),
    ],
)
def test_a_search_says_why_it_has_no_gpu(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    store = tmp_path / "runs.db"
    search = ["search", "--data", "digits", "--store", str(store), "--gpus", *words]
    result = CliRunner().invoke(cli, search)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not store.exists()


def test_status_lists_the_workers_that_are_there(store: str) -> None:
    here, gone = Worker(), Worker()
    with Store.open(store) as opened:
        for worker in (here, gone):
            opened.presence.announce(worker.name, HERE, ("jetson",))
        opened.create_study("a", specification=("5bec", {}), settings={}, seed=0)
        study = opened.study()
        opened.ask(study, 1, ("text", "key"), None)
        opened.lease(study, here.name)
    gone.close()
    listed = json.loads(CliRunner().invoke(cli, ["status", "--store", store, "--json"]).stdout)
    (worker,) = listed["workers"]
    assert (worker["name"], worker["tags"], worker["ask"]) == (here.name, ["jetson"], 1)
    lines = CliRunner().invoke(cli, ["status", "--store", store]).stdout.splitlines()
    assert " ".join(lines[-1].split()).endswith(f"{HERE.device} jetson trial 1 a")
    here.close()
