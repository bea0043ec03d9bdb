"""A driver or a worker with fake answers in a process of its own, to be killed.

The argument is a JSON object: role (`drive` or `work`), store, trace, evaluations, seconds,
method. A driver begins the study, or goes on with it when the store has it, and prints why it
stopped. A worker ends when it had nothing to do for `idle` seconds.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from study.fakes import FakeEvaluator, FakeSpace, RealSpace
from syno._util.errors import UserError
from syno.store import Store
from syno.study import Study, StudySettings
from syno.study.driver import drive
from syno.study.worker import Bench, work


class IsolatedFake(FakeEvaluator):
    """As if each evaluation had a process of its own: the end of this one is no failure."""

    is_isolated = True


def main() -> None:
    given = json.loads(sys.argv[1])
    space = FakeSpace(2 * given["evaluations"]) if given["method"] == "uniform" else RealSpace()
    with Store.open(given["store"]) as store:
        if given["role"] == "drive":
            print(drive(study_of(store, given, space)).name)
            return

        @contextlib.contextmanager
        def prepare(answers: Any, observer: Any) -> Iterator[Bench]:
            yield Bench(space.parse, IsolatedFake(given["seconds"], Path(given["trace"])))

        work(store, idle_s=given["idle"], prepare=prepare)


def study_of(store: Store, given: dict[str, Any], space: Any) -> Study:
    if store.studies():
        return Study.load(store, "study", space)
    settings = StudySettings(evaluations=given["evaluations"], seed=11, method=given["method"])
    try:
        return Study.create(store, "study", settings, space)
    except UserError:  # another driver was faster
        return Study.load(store, "study", space)


main()
