"""Replay: search methods run against a table instead of trainings.

The simulation has a clock. A free worker gets a proposal, its trial takes the seconds that the
training took when the table was made, and its result enters the history when it ends. A method
therefore sees pending operators (`status` None) as in a study with parallel workers.
"""

from __future__ import annotations

import dataclasses
import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field

from syno._util import checks
from syno._util.errors import UserError
from syno.runs.pool import spawned
from syno.study.methods import make_method, parse_method
from syno.study.methods.history import History, HistoryEntry, Trial
from syno.study.methods.method import Method, make_with_options
from syno_lab.benchmark.problem import Problem, as_problem
from syno_lab.benchmark.references import REFERENCES
from syno_lab.benchmark.step import ReplayStep
from syno_lab.benchmark.table import BenchmarkTable

# `progress` is called with (finished runs, all runs, label of the method).
Progress = Callable[[int, int, str], None]
Factory = Callable[[BenchmarkTable, int], Method]
# A study without a baseline gives this number to its first operator.
_FIRST = 1


@dataclass(frozen=True)
class MethodSpec:
    """A search method with its options. label: how results name it."""

    name: str
    options: Mapping[str, object] = field(default_factory=dict)
    label: str = ""

    @property
    def title(self) -> str:
        """The label, or else the name with the options."""
        if self.label:
            return self.label
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}:{options}" if options else self.name

    def make(self, table: BenchmarkTable | Problem, seed: int) -> Method:
        """Make the method for the operators of a table, or of one with other objectives."""
        problem = as_problem(table)
        if self.name in REFERENCES:
            make = REFERENCES[self.name]
            return make_with_options(f"'{self.name}'", make, problem, seed, options=self.options)
        return make_method(self.name, problem.table.members, seed, self.options)

    @staticmethod
    def parse(text: str) -> MethodSpec:
        """Read `NAME`, `NAME:OPTION=VALUE,...` or `LABEL@NAME:...`.

        Raises:
            UserError: for a text of another form.
        """
        label, at, rest = text.rpartition("@")
        if at and not label.strip():
            raise UserError(f"'{checks.short(text)}' does not name a search method")
        name, options = parse_method(rest)
        return MethodSpec(name, options, label.strip())


@dataclass(frozen=True)
class MethodReplay:
    """One run of a method: its finished trials in the order in which they ended.

    is_exhausted: whether the method had nothing more to propose.
    """

    method: str
    seed: int
    steps: tuple[ReplayStep, ...]
    is_exhausted: bool


def replay(
    table: BenchmarkTable,
    make: Factory,
    *,
    seed: int,
    trials: int,
    workers: int = 1,
    label: str = "",
    stop: Callable[[Sequence[ReplayStep]], bool] | None = None,
) -> MethodReplay:
    """Run a method against a table, for the objective of the table.

    The k-th trial of an operator has the k-th of its seeds, in an order that depends on `seed`.
    When all seeds are used, they repeat.

    Args:
        table: the operators and their results.
        make: makes the method for a table and a seed, such as `MethodSpec.make`.
        seed: of the method and of the choice of results.
        trials: the maximum number of trials.
        workers: trials that run at the same time.
        label: the name of the method in the result.
        stop: ends the run early, from the finished trials.

    Raises:
        UserError: if the method proposes an operator that is not in the table.
    """
    for name, number in (("trials", trials), ("workers", workers)):
        checks.whole(f"'{name}'", number, 1)
    run = _Run(Problem.of(table), make(table, seed), seed, workers)
    return run.finished(trials, label, stop or (lambda _: False))


class _Run:
    """A run of a method."""

    def __init__(self, problem: Problem, method: Method, seed: int, workers: int) -> None:
        self._problem, self._method = problem, method
        self._seed, self._workers = seed, workers
        self._results = _Results(problem.table, seed)
        original = problem.table.original
        self._baseline = () if original is None else (original,)
        self._entries: list[HistoryEntry] = []
        self._running: list[tuple[float, int, str, Trial]] = []
        self._now = 0.0

    def finished(
        self, trials: int, label: str, stop: Callable[[Sequence[ReplayStep]], bool]
    ) -> MethodReplay:
        """Run so many trials."""
        steps: list[ReplayStep] = []
        while True:
            is_exhausted = False
            while len(self._running) < self._workers and len(self._entries) < trials:
                if not self._ask():
                    is_exhausted = True  # unless the method waits for results
                    break
            if not self._running:
                break
            steps.append(self._tell())
            if stop(steps):
                break
        return MethodReplay(label, self._seed, tuple(steps), is_exhausted)

    def _ask(self) -> bool:
        ask = _FIRST + len(self._entries)
        objectives = None if self._problem.is_single else self._problem.objectives
        operator = self._method.propose(
            History(
                ask, tuple(self._entries), self._problem.table.objective, self._baseline, objectives
            )
        )
        if operator is None:
            return False
        trial = self._results.next(operator.key)
        self._entries.append(HistoryEntry(ask, operator.key, None, None, operator.text))
        heapq.heappush(self._running, (self._now + trial.seconds, ask, operator.key, trial))
        return True

    def _tell(self) -> ReplayStep:
        self._now, ask, key, trial = heapq.heappop(self._running)
        table, entries = self._problem.table, self._entries
        old = entries[ask - _FIRST]
        entries[ask - _FIRST] = dataclasses.replace(
            old, status=trial.status, trials=(trial,), told=len(entries)
        )
        if self._problem.has_ranks:
            known = {e.ask: e.trials[0] for e in entries if e.trials}
        else:  # a rating stays as it is
            known = {ask: trial}
        for number, rating in self._problem.ratings(known).items():
            entry = entries[number - _FIRST]
            if entry.value != rating:
                entries[number - _FIRST] = dataclasses.replace(entry, value=rating)
        value = None if trial.objective is None else table.objective.score(trial.objective)
        return ReplayStep(ask, key, trial.seed, self._now, value, table.scores[key])


class _Results:
    """Which result of the table a trial gets."""

    def __init__(self, table: BenchmarkTable, seed: int) -> None:
        self._table, self._seed = table, seed
        self._used: Counter[str] = Counter()

    def next(self, key: str) -> Trial:
        seeds = self._table.seeds(key)
        order = random.Random(f"{self._seed}:{key}").sample(seeds, len(seeds))
        found = self._table.trial(key, order[self._used[key] % len(order)])
        self._used[key] += 1
        return found


def replay_all(
    table: BenchmarkTable | Problem,
    methods: Sequence[MethodSpec],
    *,
    seeds: int,
    trials: int,
    workers: int = 1,
    jobs: int = 1,
    progress: Progress | None = None,
) -> dict[str, list[MethodReplay]]:
    """Run methods with the seeds 0 to `seeds` - 1.

    Args:
        table: the operators and their results, with objectives if these are not that of the table.
        methods: with distinct titles.
        seeds, trials, workers: as in `replay`.
        jobs: processes. The results do not depend on it.
        progress: see `Progress`.

    Returns:
        The runs of each method in the order of the seeds, by title.
    """
    checks.whole("'seeds'", seeds, 1)
    checks.whole("'jobs'", jobs, 1)
    repeated = [title for title, n in Counter(m.title for m in methods).items() if n > 1]
    if repeated or not methods:
        raise UserError(
            f"method '{repeated[0]}' is given twice"
            if repeated
            else "there is no method to replay\n  expected: at least one"
        )
    problem = as_problem(table)
    for method in methods:
        method.make(problem, 0)  # a UserError for an unknown name or option, before any run
    found: dict[str, list[MethodReplay]] = {method.title: [] for method in methods}
    plan = [(method, seed) for method in methods for seed in range(seeds)]
    runs: Iterable[MethodReplay] = (
        (_run(problem, method, seed, trials, workers) for method, seed in plan)
        if jobs == 1
        else _in_processes(problem, plan, trials, workers, jobs)
    )
    for done, run in enumerate(runs, 1):
        found[run.method].append(run)
        if progress is not None:
            progress(done, len(plan), run.method)
    return {title: sorted(each, key=lambda r: r.seed) for title, each in found.items()}


def _run(
    problem: Problem, method: MethodSpec, seed: int, trials: int, workers: int
) -> MethodReplay:
    run = _Run(problem, method.make(problem, seed), seed, workers)
    return run.finished(trials, method.title, lambda _: False)


_problem: Problem | None = None


def _start(problem: Problem) -> None:
    global _problem
    _problem = problem


def _run_in_process(method: MethodSpec, seed: int, trials: int, workers: int) -> MethodReplay:
    assert _problem is not None
    return _run(_problem, method, seed, trials, workers)


def _in_processes(
    problem: Problem, plan: Sequence[tuple[MethodSpec, int]], trials: int, workers: int, jobs: int
) -> Iterator[MethodReplay]:
    # Without cached properties.
    bare = Problem(dataclasses.replace(problem.table), problem.objectives)
    with spawned(jobs, _start, bare) as pool:
        runs = [pool.submit(_run_in_process, m, seed, trials, workers) for m, seed in plan]
        for run in as_completed(runs):
            yield run.result()
