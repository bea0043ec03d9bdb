"""A driver or a worker with fake answers in a process of its own, to be killed.

The argument is a JSON object: role (`drive` or `work`), store, trace, evaluations, space (its
number of operators), seed, seconds, method, mischief. A driver begins the study, or goes on with it
when the store has it, and prints why it stopped. A worker ends when it had nothing to do for `idle`
seconds. Words in mischief: `again` sends answers several times, `late` sends some
of them later, and `clock` lets the clock of the process jump.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from study.fakes import FakeEvaluator, FakeSpace, RealSpace
from syno._util.errors import UserError
from syno.store import Store, database, lease, records
from syno.store.errors import persistently
from syno.study import Study, StudySettings
from syno.study.driver import drive
from syno.study.worker import Bench, work


class IsolatedFake(FakeEvaluator):
    """As if each evaluation had a process of its own: the end of this one is no failure."""

    is_isolated = True


class Mischievous(Store):
    """A store whose answers arrive several times, late and in another order."""

    words = ""

    def tell(self, *answer: Any, **more: Any) -> None:
        if "late" in self.words and random.random() < 0.2:
            threading.Timer(0.3, self._again, [answer, more]).start()
            return
        super().tell(*answer, **more)
        if "again" in self.words:
            sent.append((answer, more))
            self._again(answer, more)
            self._again(*random.choice(sent))

    def _again(self, answer: tuple[Any, ...], more: dict[str, Any]) -> None:
        with contextlib.suppress(UserError):  # it does not count, or the database is down
            super().tell(*answer, **more)


sent: list[tuple[tuple[Any, ...], dict[str, Any]]] = []


def jumping_clock() -> None:
    """Let each look at the clock of this process give another day."""

    def jumped() -> str:
        wrong = datetime.timedelta(days=random.uniform(-10, 10))
        return (datetime.datetime.now(datetime.UTC) + wrong).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    for module in (database, lease, records):
        module.utc_now = jumped  # type: ignore[attr-defined]
    now = time.time
    time.time = lambda: now() + random.uniform(-1e6, 1e6)


def main() -> None:
    given = json.loads(sys.argv[1])
    space = FakeSpace(given["space"]) if given["method"] == "uniform" else RealSpace()
    Mischievous.words = given["mischief"]
    if "clock" in given["mischief"]:
        jumping_clock()
    with persistently(lambda: Mischievous.open(given["store"]), print_note) as store:
        if given["role"] == "drive":
            print(drive(study_of(store, given, space)).name)
            return

        @contextlib.contextmanager
        def prepare(answers: Any, observer: Any) -> Iterator[Bench]:
            yield Bench(space.parse, IsolatedFake(given["seconds"], Path(given["trace"])))

        work(store, idle_s=given["idle"], prepare=prepare)


def print_note(text: str) -> None:
    print(text, file=sys.stderr)


def study_of(store: Store, given: dict[str, Any], space: Any) -> Study:
    limit = given["evaluations"]
    settings = StudySettings(
        evaluations=limit,
        seed=given["seed"],
        method=given["method"],
    )
    if not store.studies():
        with contextlib.suppress(UserError):  # another driver was faster
            return Study.create(store, "study", settings, space)
    return Study.load(store, "study", space, evaluations=limit)


main()
