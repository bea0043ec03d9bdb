"""The actor on a node, without a cluster: it starts a worker, watches it, and ends it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

import syno
from syno.launch.ray_actor import RayWorker


class QuickWorker(RayWorker):
    module = "study.quick_worker"


def orders(study: str | None = None, folder: str = "/") -> str:
    return json.dumps({"study": study, "threads": 3, "folder": folder, "store": "url"})


def ended(actor: RayWorker) -> dict[str, Any]:
    until, lines = time.monotonic() + 300, list[str]()
    while (found := json.loads(actor.look()))["code"] is None:
        assert time.monotonic() < until
        lines += found["lines"]
        time.sleep(0.05)
    return dict(found) | {"lines": lines + found["lines"]}


def test_it_says_the_versions_of_its_node(monkeypatch):
    context = SimpleNamespace(get_node_id=lambda: "node-1")
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get_runtime_context=lambda: context))
    found = json.loads(RayWorker().hello())
    assert found["syno"] == syno.__version__
    assert found["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (found["node"], found["actor"]) == ("node-1", os.getpid())
    assert found["rules"]


@pytest.mark.parametrize(
    ("study", "code", "said"),
    [
        ("mistake", 2, "there is no data here\n  what to do: mount it"),
        ("failure", 1, ""),
        ("done", 0, "2"),
    ],
)
def test_it_says_how_the_worker_ended(study, code, said):
    actor = QuickWorker()
    assert json.loads(actor.begin(orders(study)))["process"] > 0
    found = ended(actor)
    assert (found["code"], found["said"]) == (code, said)


def test_the_worker_has_its_threads_no_cores_and_the_folder_of_the_search(tmp_path):
    actor = QuickWorker()
    process = json.loads(actor.begin(orders(folder=str(tmp_path))))["process"]
    assert os.readlink(f"/proc/{process}/cwd") == str(tmp_path)
    assert actor._process is not None
    assert actor._process.stdout is not None
    given = json.loads(actor._process.stdout.readline())
    assert (given["threads"], given["cores"], given["store"]) == ("3", [], "url")
    assert json.loads(actor.look()) == {"code": None, "said": "", "lines": []}
    actor.end()
    assert ended(actor)["code"] == -signal.SIGTERM


def test_a_folder_that_the_node_does_not_have_is_not_needed(tmp_path):
    actor = QuickWorker()
    actor.begin(orders("done", folder=str(tmp_path / "missing")))
    assert ended(actor)["code"] == 0


class Talkative(RayWorker):
    module = "no.such.module"


def test_the_last_lines_of_a_worker_that_fails_are_returned():
    actor = Talkative()
    actor.begin(orders())
    found = ended(actor)
    assert found["code"] == 1
    assert found["lines"][-1] == "ModuleNotFoundError: No module named 'no'"


def test_an_error_of_the_actor_is_a_text():
    found = json.loads(RayWorker().begin("no JSON"))
    assert found["failure"].startswith("JSONDecodeError: Expecting value")
