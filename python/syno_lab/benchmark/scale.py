"""How a search scales with its workers: simulations of several numbers of them."""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from syno._util import checks
from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.space import Space
from syno.store import Store
from syno.store.environment import capture_environment
from syno.study import Study, StudySettings
from syno.study.loop import default_stopper
from syno_lab.benchmark.cluster import Load, Operation, Recorded, SimulatedCluster
from syno_lab.benchmark.measured_store import measured

# Answers for each worker before what is measured, and those that are measured.
_WARM, _ROUNDS = 1, 3
# The fewest answers that are measured.
_LEAST = 40
MOST_WORKERS = 4096
# From this share of the possible throughput on, the workers are what limits it.
GOOD = 0.95
# From this share of the time on, something is busy without a break.
_BUSY = 0.7
_DEPTHS = range(7, 13)

# `progress` is called with (answers so far, all answers, what is simulated).
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class OperationTime:
    """What the calls of one kind took in the simulation, with the latency of the database.

    name: `propose` and `look` of the driver; `announce`, `take`, `renew` and `tell` of workers.
    mean_ms, p99_ms: of a call; locked_ms: the mean time under the lock of the study.
    """

    name: str
    count: int
    mean_ms: float
    p99_ms: float
    locked_ms: float

    @staticmethod
    def of(name: str, recorded: Operation) -> OperationTime:
        """Summarize the calls of one kind."""
        ordered = sorted(recorded.seconds)
        last = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
        mean, held = statistics.fmean(ordered), statistics.fmean(recorded.held)
        return OperationTime(name, len(ordered), 1e3 * mean, 1e3 * last, 1e3 * held)


@dataclass(frozen=True)
class ScaleResult:
    """One simulation, after its start.

    workers: their number.
    answers: results that count, within `seconds` of simulated time.
    ideal: answers in a second if all workers evaluated without a break, and none was lost.
    missing: the mean number of earlier proposals whose result was missing when the next one was
        made; unread: of these, those whose evaluation had ended.
    lost, dropped: evaluations whose worker was lost, and whose answer came too late to count.
    wasted: their share of the time of all evaluations.
    lock, driver: the shares of the time in which the lock of the study was held, and in which the
        driver was at work.
    operations: the calls of the store.
    """

    workers: int
    answers: int
    seconds: float
    ideal: float
    missing: float
    unread: float
    lost: int
    dropped: int
    wasted: float
    lock: float
    driver: float
    operations: tuple[OperationTime, ...]

    @property
    def throughput(self) -> float:
        """Answers in a second."""
        return self.answers / self.seconds

    @property
    def efficiency(self) -> float:
        """The share of the ideal throughput."""
        return self.throughput / self.ideal

    @property
    def bottleneck(self) -> str:
        """What limits the throughput, in words."""
        if self.efficiency >= GOOD:
            return "workers"
        busy = {"lock of the study": self.lock, "driver": self.driver}
        name = max(busy, key=lambda each: busy[each])
        if busy[name] >= _BUSY:
            return name
        if self.wasted >= (1 - self.efficiency) / 2:
            return "lost workers"
        return "waiting between looks"

    @staticmethod
    def of(load: Load, recorded: Recorded) -> ScaleResult:
        """Summarize what a simulation recorded."""
        seconds = recorded.ended - recorded.began
        spent = recorded.useful + recorded.wasted
        return ScaleResult(
            load.workers,
            recorded.answers,
            seconds,
            load.workers * recorded.answers / recorded.useful,
            statistics.fmean(recorded.missing or [0]),
            statistics.fmean(recorded.unread or [0]),
            recorded.lost,
            recorded.dropped,
            recorded.wasted / spent,
            min(1.0, recorded.locked / seconds),
            min(1.0, recorded.driving / seconds),
            tuple(OperationTime.of(*each) for each in sorted(recorded.operations.items())),
        )


@dataclass(frozen=True)
class ScaleResults:
    """Simulations of several numbers of workers.

    load: of the first of them; they differ in the number of workers only.
    method: the search method.
    store: `sqlite` or `postgresql`.
    """

    load: Load
    method: str
    seed: int
    store: str
    results: tuple[ScaleResult, ...]

    def described(self) -> dict[str, object]:
        """Return everything as plain values, with the machine."""
        load = dataclasses.asdict(self.load)
        del load["workers"]
        return {
            "load": load,
            "method": self.method,
            "seed": self.seed,
            "store": self.store,
            "results": [
                dataclasses.asdict(each)
                | {
                    "throughput": each.throughput,
                    "efficiency": each.efficiency,
                    "bottleneck": each.bottleneck,
                }
                for each in self.results
            ],
            "environment": dataclasses.asdict(capture_environment(threads=1, rules="")),
        }


class _ScaleSpace:
    """So many operators of small networks, which nobody trains: 1-D convolutions and the like."""

    rules = "simulated"

    def __init__(self, count: int) -> None:
        for depth in _DEPTHS:
            self._specification = _specification(depth)
            self._space = Space.enumerate(self._specification, threads=1)
            self.operators: Sequence[Operator] = list(self._space)
            if len(self.operators) >= count:
                break
        else:
            raise UserError(
                f"a simulation of {count:,} trials needs as many operators, and the space of the "
                f"simulation has {len(self.operators):,}\n  what to do: fewer workers (--workers)"
            )
        self.specification: tuple[str, Json] = (self._specification.key, {})

    def rejections(self) -> dict[str, int]:
        """Count nothing: see `Space`."""
        return {}

    def parse(self, text: str) -> Operator:
        """Read an operator from its text."""
        return Operator.from_text(text, self._specification)


def _specification(depth: int) -> Specification:
    return Specification(
        "[N, C_in: unordered, H]",
        "[N, C_out: unordered, H]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 0"],
        ["k=3: 2", "s=2: 1", "g=4: 2"],
        bindings=["C_in=16, C_out=16, H=32"],
        passed_through=[(0, 0)],
        max_depth=depth,
    )


def parse_workers(text: str) -> tuple[int, ...]:
    """Read numbers of workers, such as `1,64,256`.

    Raises:
        UserError: for a text of another form, and for numbers out of range.
    """
    found = checks.parsed_numbers("--workers", text, "workers", "1,64,256")
    for number in found:
        if not 1 <= number <= MOST_WORKERS:
            raise UserError(
                f"a simulation has 1 to {MOST_WORKERS:,} workers (--workers), got {number:,}"
            )
    return found


def simulate_scale(
    store: Store,
    workers: Sequence[int],
    *,
    trial_seconds: float = 60.0,
    failures: float = 0.0,
    stragglers: float = 0.0,
    latency_ms: float = 0.0,
    method: str = "uniform",
    seed: int = 0,
    progress: Progress | None = None,
    timer: Callable[[], float] = time.perf_counter,
) -> ScaleResults:
    """Simulate a search with each number of workers, in a study of its own.

    Args:
        store: an open store, such as a new SQLite file; this process uses it alone. Its clock is
            that of the simulation from then on.
        workers: the numbers of workers.
        trial_seconds: the mean time of an evaluation that is no straggler.
        failures: the share of the evaluations during which the worker is lost.
        stragglers: the share of the evaluations that take ten times as long.
        latency_ms: of each message to the database, added to what its calls take here.
        method: a search method without options.
        seed: of the evaluations and of the search.
        progress: see `Progress`.
        timer: gives the time in seconds, by which calls of the store are measured.

    Raises:
        UserError: for numbers out of range, and for an unknown method.
    """
    _check(trial_seconds, failures, stragglers, latency_ms)
    loads = [
        Load(number, trial_seconds, failures, stragglers, latency_ms / 1e3) for number in workers
    ]
    if not loads:
        raise UserError("there is no number of workers to simulate (--workers)")
    space = _ScaleSpace(max(map(_trials, loads)) + max(workers) * 2)
    results = []
    for load in loads:
        answers, warm = _answers(load), _WARM * load.workers
        settings = StudySettings(
            evaluations=_trials(load) + load.workers * 2,
            seed=seed,
            method=method,
            baseline=False,
            latency={"threads": 1},
        )
        study = Study.create(store, f"scale-{load.workers}-", settings, space)
        what = f"{load.workers} workers"

        def move(done: int, total: int = answers, what: str = what) -> None:
            if progress is not None:
                progress(done, total, what)

        with measured(store, timer) as measure:
            cluster = SimulatedCluster(store, study, default_stopper(study), load, measure, seed)
            results.append(ScaleResult.of(load, cluster.run(warm, answers, move)))
        study.close()
    dialect = "sqlite" if store.path is not None else "postgresql"
    return ScaleResults(loads[0], method, seed, dialect, tuple(results))


def _answers(load: Load) -> int:
    """The number of answers of a simulation."""
    return _WARM * load.workers + max(_LEAST, _ROUNDS * load.workers)


def _trials(load: Load) -> int:
    """The number of proposals that a simulation may need, with those that nobody answers."""
    return _answers(load) + 2 * load.workers


def _check(trial_seconds: float, failures: float, stragglers: float, latency_ms: float) -> None:
    for option, share in (("failures", failures), ("stragglers", stragglers)):
        if not 0 <= checks.number(f"'{option}'", share) < 1:
            raise UserError(
                f"{option} (--{option}) are a share of the trials, from 0 to below 1, got {share:g}"
            )
    if not 0 < checks.number("'trial_seconds'", trial_seconds) <= 1e6:
        raise UserError(
            "a trial (--trial-seconds) takes more than 0 and at most 1,000,000 seconds, "
            f"got {trial_seconds:g}"
        )
    if not 0 <= checks.number("'latency_ms'", latency_ms) <= 1e4:
        raise UserError(
            "the latency of the database (--latency-ms) is from 0 to 10,000 milliseconds, "
            f"got {latency_ms:g}"
        )
