"""A search on digits, in a process of its own, among whose operators some do harm; to be killed.

Arguments: STORE NOTES EVALUATIONS. Goes on with the study when the store has one. Each evaluation
writes a line "PID KEY" into NOTES when it begins. By the number of distinct operators so far, the
4th crashes, the 8th hangs and ignores signals, the 12th eats memory, the 16th crashes once.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = str(Path(__file__).resolve().parent)
if FOLDER not in sys.path:
    sys.path.insert(0, FOLDER)

NOTES = "HOSTILE_SEARCH_NOTES"
HARM = {4: "crash", 8: "hang", 12: "eat", 16: "crash once"}


class HostileEvaluator:
    """The real evaluator, but for the operators that do harm."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.failure = inner.failure

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "observer":
            self._inner.observer = value
        else:
            object.__setattr__(self, name, value)

    def baseline(self) -> Any:
        return self._inner.baseline()

    def evaluate(self, operator: Any) -> Any:
        path = Path(os.environ[NOTES])
        with path.open("a") as stream:
            stream.write(f"{os.getpid()} {operator.key}\n")
        keys = [line.split()[1] for line in path.read_text().splitlines()]
        harm = HARM.get(list(dict.fromkeys(keys)).index(operator.key) + 1, "")
        if harm == "crash" or (harm == "crash once" and keys.count(operator.key) == 1):
            ctypes.string_at(0)
        if harm == "hang":
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            time.sleep(3600)
        if harm == "eat":
            kept = []
            while True:
                kept.append(bytearray(os.urandom(1 << 10) * (1 << 12)))
        return self._inner.evaluate(operator)


def make_evaluator(*arguments: Any, **settings: Any) -> HostileEvaluator:
    from syno.study.evaluate import evaluator

    return HostileEvaluator(evaluator.make_evaluator(*arguments, **settings))


def main() -> None:
    import hostile_search  # this file as a module: what the other process is sent is a name in it

    from syno import IsolationOptions, SpaceOptions, TimingOptions, TrainOptions
    from syno.study.evaluate import evaluator, isolated_evaluator
    from syno.study.search import resume, search
    from syno.train import Fidelity

    evaluator.make_evaluator = hostile_search.make_evaluator  # type: ignore[assignment]
    isolated_evaluator.GRACE_S = 0.0
    store, notes, evaluations = sys.argv[1:]
    os.environ[NOTES] = notes
    if Path(store).exists():
        resume(store)
        return
    search(
        "cnn-small",
        "digits",
        model_options={"width": 4, "layers": 1, "stages": 2},
        train=TrainOptions(
            fidelity=Fidelity("brief", images=200, resolution=8, epochs=1),
            max_slowdown=1000.0,
            deadline_s=2.0,
            kernels="eager",
        ),
        evaluations=int(evaluations),
        space=SpaceOptions(max_nodes=2000),
        seed=1,
        timing=TimingOptions(repeats=20, warmup=1, latency="eager"),
        isolation=IsolationOptions(isolate=True, memory_limit=800 << 20),
        store=store,
        name="hostile",
    )


if __name__ == "__main__":
    main()
