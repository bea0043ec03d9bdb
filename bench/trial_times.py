"""Where the time of a trial goes: of a search at one fidelity, by part of the evaluation.

    python bench/trial_times.py --data cifar10 --operators 8 --out trial_times.json

Operators are those that `syno search MODEL --data DATA` proposes with the same seed. Each is
evaluated in a process of its own, as in a search, which is forked from one that has loaded network
and data. Times are seconds of the clock and of processors, the latter with those of the compilers
that a part starts; medians over the operators. The cache for compiled code is an empty folder, so
that everything of an operator is compiled, unless `--cache` names one.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import importlib
import json
import os
import pickle
import shlex
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from syno.operators.operator import Operator
from syno.options import TimingOptions, TrainOptions
from syno.space.options import SpaceOptions
from syno.store import Store
from syno.store.environment import capture_environment
from syno.study.evaluate.evaluator import NetworkEvaluator

# What is timed, as `module:function`, and the part of the table that it belongs to.
_PARTS = {
    "syno.study.evaluate.network:Network.with_operator": "network with the operator",
    "syno.study.evaluate.evaluator:verify": "verification against the interpreter",
    "syno.codegen.native.kernels:_compiled": "training kernels: emit and compile",
    "syno.codegen.native.kernels:_check": "training kernels: check",
    "syno.study.evaluate.evaluator:step_slowdown": "timing of a step",
    "syno.study.evaluate.evaluator:train": "training steps",
    "syno.train.images:ImageTask.metrics": "accuracy on the validation split",
    "syno.study.evaluate.evaluator:latency": "latency: timed runs",
    "syno.inference.compiling:prepare": "latency: trace",
    "syno.study.evaluate.engines:prepare": "latency: trace",
    "syno.inference.compiling:_compiled": "latency: emit and compile",
    "syno.inference.compiling:_check": "latency: check",
}
_REST = "the rest"


class Clock:
    """Seconds of clock and processors, each given to the innermost part that runs."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self._running = [_REST]
        self._last = self._now()

    def _now(self) -> tuple[float, float]:
        times = os.times()
        return time.perf_counter(), sum(times[:4])

    def _turn(self) -> None:
        now = self._now()
        total = self.seconds.setdefault(self._running[-1], [0.0, 0.0])
        for place in (0, 1):
            total[place] += now[place] - self._last[place]
        self._last = now

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Give the time of the block to a part."""
        self._turn()
        self._running.append(name)
        try:
            yield
        finally:
            self._turn()
            self._running.pop()

    def finish(self) -> dict[str, list[float]]:
        """Return the seconds of all parts."""
        self._turn()
        return self.seconds


def instrument(clock: Clock) -> None:
    """Let the clock know when the functions of `_PARTS` run."""
    for where, name in _PARTS.items():
        module, _, path = where.partition(":")
        holder: object = importlib.import_module(module)
        *outer, last = path.split(".")
        for each in outer:
            holder = getattr(holder, each)
        setattr(holder, last, _timed(getattr(holder, last), clock, name))


def _timed(call: Callable[..., object], clock: Clock, name: str) -> Callable[..., object]:
    @functools.wraps(call)
    def timed(*arguments: object, **named: object) -> object:
        if threading.current_thread() is not threading.main_thread():
            return call(*arguments, **named)  # beside a part, which has its processor time
        with clock.part(name):
            return call(*arguments, **named)

    return timed


def evaluated(
    evaluator: NetworkEvaluator, operator: Operator
) -> tuple[str, dict[str, list[float]]]:
    """Evaluate an operator in a process of its own; its status and the seconds of the parts."""
    reading, writing = os.pipe()
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        clock = Clock()
        instrument(clock)
        outcome = evaluator.evaluate(operator)
        with os.fdopen(writing, "wb") as end:
            end.write(pickle.dumps((outcome.status, outcome.accuracy, clock.finish())))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as end:
        status, accuracy, seconds = pickle.loads(end.read())
    os.waitpid(child, 0)
    total = time.perf_counter() - began
    seconds["all"] = [total, sum(each[1] for each in seconds.values())]
    print(f"{operator.key[:8]} {status} {accuracy} {total:.1f} s", file=sys.stderr)
    return f"{status} {accuracy}", seconds


def operators(given: argparse.Namespace) -> tuple[list[Operator], NetworkEvaluator]:
    """The operators that a search proposes first, and the evaluator that it evaluates them with."""
    from syno.store import Outcome
    from syno.study import search as searching
    from syno.study.arguments import Search
    from syno.study.specifications import specification_for
    from syno.study.study import Study
    from syno.train import Fidelity

    train = TrainOptions(fidelity=given.fidelity, kernels=given.kernels)
    timing = TimingOptions()
    if given.latency:
        timing = dataclasses.replace(timing, latency=given.latency)
    asked = Search(
        net=given.model,
        data=given.data,
        evaluations=given.operators,
        method=given.method,
        seed=given.seed,
        space=SpaceOptions(max_nodes=given.max_nodes or SpaceOptions().max_nodes),
        train=train,
        timing=timing,
    )
    settings, _ = searching._settings(asked, None)
    rungs = searching.load_rungs(given.model, settings, settings.data_dir, None)
    wanted = specification_for(None, {}, rungs.network)
    space = searching._compose(
        wanted, rungs, rungs.network.template, settings, searching.StudyObserver()
    )
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/s.db") as store:
        study = Study.create(store, "times", settings, space)
        found: list[Operator] = []
        while len(found) < given.operators:
            (proposal,) = study.ask(1)
            if proposal.operator is not None:
                found.append(proposal.operator)
            study.tell(proposal.id, Outcome("rejected", reason="not evaluated here"))
        study.close()
    evaluator = NetworkEvaluator(
        rungs.network,
        rungs.datasets[-1],
        Fidelity.from_json(settings.fidelity),
        given.seed,
        timing=settings.timing,
        max_slowdown=settings.train.max_slowdown,
        kernels=settings.train.kernels or "",
    )
    return found, evaluator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="resnet-small")
    parser.add_argument("--data", default="cifar10")
    parser.add_argument("--fidelity", default=None)
    parser.add_argument("--method", default="uniform")
    parser.add_argument("--operators", type=int, default=8)
    parser.add_argument("--max-nodes", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kernels", choices=("compiled", "eager"))
    parser.add_argument("--latency", choices=("compiled", "eager"))
    parser.add_argument("--cache", help="the folder for compiled code")
    parser.add_argument("--out", help="where the figures go as JSON")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SYNO_CACHE"] = given.cache or folder
        found, evaluator = operators(given)
        for name in ("torch._dynamo", "torch._functorch.partitioners", "torch.export._trace"):
            importlib.import_module(name)
        evaluator.prepared()
        # What all trials share is compiled once, and is no cost of a trial.
        evaluated(evaluator, found[0])
        trials = [evaluated(evaluator, operator) for operator in found[1:]]
    parts = ["all", *dict.fromkeys(_PARTS.values()), _REST]
    table = {
        part: [
            round(statistics.median(t.get(part, [0.0, 0.0])[place] for _, t in trials), 3)
            for place in (0, 1)
        ]
        for part in parts
    }
    result = {
        "command": shlex.join(["python", *sys.argv]),
        "trials": [{"outcome": outcome, "seconds": seconds} for outcome, seconds in trials],
        "median": table,
        "environment": dataclasses.asdict(capture_environment(threads=1, rules="")),
    }
    for part, (clock, processor) in table.items():
        print(f"{part:40} {clock:8.2f} {processor:8.2f}")
    if given.out:
        with open(given.out, "w", encoding="utf-8") as file:
            file.write(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
