"""A worker with fake answers, which the actor of a test starts on a node of a real Ray cluster.

`data_dir` is a folder of the test: a trace of the evaluations, and the GPUs of each worker.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from study.fakes import FakeEvaluator, FakeSpace
from syno.launch.ray_actor import RayWorker
from syno.runs import helper_process
from syno.store import Store
from syno.study.observer import StudyObserver
from syno.study.worker import Bench, work
from syno.study.worker_process import end_with_parent

SPACE = 1000  # operators
EVALUATION_S = 0.3


class IsolatedFake(FakeEvaluator):
    """As if each evaluation had a process of its own: the end of this one is no failure."""

    is_isolated = True


class FakeWorker(RayWorker):
    """The actor that starts this process."""

    module = "launch.fake_worker_process"


def main() -> None:
    """Work until the input ends."""
    given = helper_process.read_orders()
    end_with_parent()
    folder = Path(given["data_dir"])
    (folder / f"gpus-{os.getpid()}").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "none"))
    space = FakeSpace(SPACE)

    @contextlib.contextmanager
    def prepare(answers: Any, observer: StudyObserver) -> Iterator[Bench]:
        yield Bench(space.parse, IsolatedFake(EVALUATION_S, folder / "trace"))

    with Store.open(given["store"], create=False) as store:
        print(work(store, study=given["study"], tags=given["tags"], prepare=prepare), end="")
