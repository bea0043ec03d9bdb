"""An evaluator that says, when its process ends, how many objects Python will not free."""

from __future__ import annotations

import atexit
import gc

from syno.store import Outcome
from syno.study.observer import StudyObserver


class Quiet:
    """Evaluates nothing."""

    def __init__(self) -> None:
        self.observer = StudyObserver()
        atexit.register(lambda: print(f"{gc.get_freeze_count()} objects are frozen", flush=True))

    def baseline(self) -> Outcome:
        return Outcome("ok", accuracy=0.9)

    def evaluate(self, _operator: object) -> Outcome:
        return Outcome("ok", accuracy=0.5)
