"""A store of many trials: its size, its rates, and how long proposals and answers take.

    python bench/store_bench.py --operators 1000000 --trials 100000 --workers 64 --out store.json
    python bench/store_bench.py --store postgresql://syno@host/bench --out store.json
    python bench/store_bench.py --server --out store.json

The store is a new SQLite file, the empty database of `--store`, or with `--server` a PostgreSQL
server of Debian's package, which is started for the benchmark and writes as durably as any. It is
filled with rows as Syno writes them, with seals and a log; opening it checks all of them. Then the
study is continued: a driver proposes, and so many worker processes take what it proposes, evaluate
it for `--trial-seconds` (they sleep), and store results. They start at random moments within the
time of one trial, and only what happens after their first trials counts, as in a search that has
run for a while. What is timed are the calls alone: `propose` of the driver (all that it does for
one proposal), and `look`, `take` and `tell` of workers; `*_processor` is the processor's time of
the same calls in their own process.

Times are of the clock, with those of all processes of this machine. Use a quiet machine.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from machine_report import report
from sqlalchemy import Connection, func, insert, select, text

from syno.store import (
    BaselineLatency,
    MeasurementResult,
    Outcome,
    ProposalRecord,
    Store,
    StudyRecord,
    VerificationResult,
    Worker,
    schema,
)
from syno.store.database import Database, now, parse_address
from syno.store.environment import capture_environment
from syno.store.records import COMPLETED, OPERATOR, canonical_json, digest
from syno.store.seals import event_digest, seal
from syno.study import Study, StudySettings
from syno.study.answers import Answers
from syno.study.driver import LOOK_S as DRIVER_LOOK_S
from syno.study.driver import kept_waiting
from syno.study.worker import LOOK_S

_ROWS = 5000  # that are inserted at once
Values = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class MadeOperator:
    """An operator of which nothing but text and key is used."""

    text: str

    @property
    def key(self) -> str:
        """As long as a real one."""
        return digest(self.text) + digest(self.text + " again")


class MadeSpace:
    """So many operators, which no specification gives."""

    rules = "bench"
    specification = ("bench", {"input": "[H]"})

    def __init__(self, count: int) -> None:
        self.operators: list[Any] = [made_operator(number) for number in range(count)]

    def rejections(self) -> dict[str, int]:
        """Nothing was enumerated."""
        return {}

    def parse(self, text: str) -> Any:
        """Read an operator."""
        return MadeOperator(text)


def made_operator(number: int) -> MadeOperator:
    """Make an operator with a text of the usual length."""
    steps = "; ".join(f"step {i} of {number} merges C_in with s" for i in range(8))
    return MadeOperator(f"[N, C_in, H] {steps} -> [N, C_out, H]")


def made_outcome(operator: MadeOperator) -> Outcome:
    """Make a result of the usual size, which follows from the operator."""
    value = int(operator.key[:8], 16) / 16**8
    return Outcome(
        "ok",
        accuracy=0.5 + 0.4 * value,
        rung="bench",
        recipe={"epochs": 3},
        seconds=60.0,
        macs=1_000_000,
        params=10_000,
        primitives={"reduce": 2, "unfold": 1, "contract": 1},
        verification=VerificationResult(
            operator.key, [{"C_in": 16, "H": 32}], "bench", 0, passed=True, max_error=0.0
        ),
        measurement=MeasurementResult(
            1.0 + value, 0.1, 1.0 + value, BaselineLatency(1.0, 0.1), threads=1, repeats=20
        ),
        details={"losses": [2.0, 1.5, 1.0 + value], "loss": 1.0 + value},
    )


class Filling:
    """Writes the rows of a study as `Store.ask` and `Store.tell` write them, many at once."""

    def __init__(self, connection: Connection, study: StudyRecord) -> None:
        self._connection, self._study = connection, study
        self._rows: dict[str, list[Values]] = {}
        self._next: dict[str, int] = {}
        self._time = now(connection)
        row = connection.execute(
            select(
                schema.study.c.events, schema.study.c.head, schema.study.c.specification_id
            ).where(schema.study.c.id == study.id)
        ).one()
        self._events, self._head, self._specification = row
        self.count = 0  # of rows
        self._environment = self._add_environment()

    def operators(self, made: Iterable[MadeOperator]) -> None:
        """Write operators that nobody proposed yet, and those that are proposed."""
        for operator in made:
            self.operator(operator)
        self.flush()

    def operator(self, operator: MadeOperator) -> tuple[int, str]:
        """Write an operator; return its id and seal."""
        return self._add(
            schema.operator,
            specification_id=self._specification,
            key=operator.key,
            text=operator.text,
            digest=digest(operator.text),
            key_version=0,
        )

    def trial(self, ask: int, operator: MadeOperator) -> None:
        """Write a proposal with its answer."""
        row = self.operator(operator)
        proposal, _ = self._add(
            schema.proposal,
            study_id=self._study.id,
            ask=ask,
            kind=OPERATOR,
            operator_id=row[0],
            state=COMPLETED,
            lease=None,
            heartbeat=None,
            created=self._time,
            attempts=0,
            rung_index=0,
        )
        data = {"proposal": proposal, "ask": ask}
        self.event("asked", data | {"seen": self._events}, {"operator": row})
        outcome = made_outcome(operator)
        stored = {"environment": self._environment} | self._answer(proposal, row[0], outcome)
        self.event("told", data | {"status": outcome.status}, stored)

    def event(self, kind: str, data: Values, stored: dict[str, tuple[int, str]]) -> None:
        """Write an event, whose digest follows from the one before."""
        self._events += 1
        named = {table: {str(row): made} for table, (row, made) in stored.items()}
        values = {"sequence": self._events, "kind": kind, "created": self._time}
        texts = {"data": canonical_json(data), "stored": canonical_json(named)}
        self._head = event_digest(self._head, values | texts)
        content = {"study_id": self._study.id, "data": data, "stored": named}
        self._put(schema.event, values | content | {"digest": self._head})

    def close(self) -> None:
        """Write what is left, and where the log ends."""
        self.flush()
        column = schema.study.c
        ends = {"events": self._events, "head": self._head}
        self._connection.execute(
            schema.study.update().where(column.id == self._study.id).values(**ends)
        )
        if self._connection.dialect.name == "postgresql":
            for name in self._next:
                self._connection.execute(
                    text(
                        f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), "
                        f"(SELECT max(id) FROM {name}))"
                    )
                )

    def flush(self) -> None:
        """Write the rows that were made, in the order of their references."""
        for table in schema.metadata.sorted_tables:
            rows = self._rows.pop(table.name, [])
            for start in range(0, len(rows), _ROWS):
                self._connection.execute(insert(table), rows[start : start + _ROWS])

    def _answer(self, proposal: int, operator: int, made: Outcome) -> dict[str, tuple[int, str]]:
        environment, verified, timed = self._environment[0], made.verification, made.measurement
        assert verified is not None
        assert timed is not None
        evaluation = self._add(
            schema.evaluation,
            proposal_id=proposal,
            rung_index=0,
            recipe_digest=digest(canonical_json(made.recipe)),
            recipe=made.recipe,
            split=made.split,
            rung=made.rung,
            seed=made.seed,
            status=made.status,
            reason=made.reason,
            accuracy=made.accuracy,
            macs=made.macs,
            params=made.params,
            primitives=made.primitives,
            seconds=made.seconds,
            details=made.details,
            environment_id=environment,
            finished=self._time,
        )
        verification = self._add(
            schema.verification,
            operator_id=operator,
            **dataclasses.asdict(verified),
            environment_id=environment,
            created=self._time,
        )
        baseline = self._add(
            schema.baseline,
            evaluation_id=evaluation[0],
            environment_id=environment,
            **dataclasses.asdict(timed.baseline),
            created=self._time,
        )
        names = ("median_ms", "spread_ms", "ratio", "threads", "repeats", "batch")
        measurement = self._add(
            schema.measurement,
            evaluation_id=evaluation[0],
            verification_id=verification[0],
            source_hash=verified.source_hash,
            passed=verified.passed,
            baseline_id=baseline[0],
            environment_id=environment,
            device="bench",
            **{name: getattr(timed, name) for name in names},
            created=self._time,
        )
        found = (evaluation, verification, baseline, measurement)
        tables = ("evaluation", "verification", "baseline", "measurement")
        return dict(zip(tables, found, strict=True))

    def _add_environment(self) -> tuple[int, str]:
        made = capture_environment(threads=1, rules="bench", device="bench")
        values = dataclasses.asdict(made)
        values["commit_hash"] = values.pop("commit")
        return self._add(schema.environment, digest=made.digest, **values)

    def _add(self, table: Any, **values: Any) -> tuple[int, str]:
        if table.name not in self._next:
            self._next[table.name] = self._connection.scalar(select(func.max(table.c.id))) or 0
        self._next[table.name] += 1
        made = seal(table, values)
        self._put(table, values | {"id": self._next[table.name], "seal": made})
        return self._next[table.name], made

    def _put(self, table: Any, values: Values) -> None:
        self._rows.setdefault(table.name, []).append(values)
        self.count += 1
        if self.count % (10 * _ROWS) == 0:
            self.flush()


def fill(store: Store, study: StudyRecord, operators: int, trials: int) -> int:
    """Fill a study with answered proposals; return the number of rows."""
    with store.database.writing() as connection:
        filling = Filling(connection, study)
        for number in range(trials):
            filling.trial(number + 1, made_operator(number))
        filling.operators(made_operator(number) for number in range(trials, operators))
        filling.close()
        return filling.count


def unchecked(url: str) -> Store:
    """Open a store that was checked before."""
    address = parse_address(url)
    return Store(Database.of(url, address, create=False, read_only=False, timeout=60.0))


class Clock:
    """The times of calls after a moment, on the clock and of the processor of this process."""

    def __init__(self, begin: float) -> None:
        self._begin = begin
        self.times: dict[str, list[float]] = {}
        self.calls: Counter[str] = Counter()  # also of those before the moment

    @contextlib.contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Time what is in the block; a block that raises is left out."""
        began, used = time.perf_counter(), time.process_time()
        yield
        ended, processor = time.perf_counter() - began, time.process_time() - used
        self.calls[name] += 1
        if time.monotonic() >= self._begin:
            self.times.setdefault(name, []).append(ended)
            self.times.setdefault(f"{name}_processor", []).append(processor)


def work(url: str, name: str, window: tuple[float, float], trial_seconds: float, out: Any) -> None:
    """Be a worker: take, sleep, and tell, until the window of time is over."""
    store, worker = unchecked(url), Worker()
    record = store.study(name)
    settings = StudySettings.from_json(record.settings)
    answers = Answers(store, record, settings, MadeSpace.rules, worker)
    answers.counts_attempts = False
    store.presence.announce(worker.name, answers.environment, ())
    rng = random.Random(os.getpid())
    begin, until = window
    clock = Clock(begin)
    time.sleep(rng.uniform(0, trial_seconds))
    while time.monotonic() < until:
        with clock.timed("look"):
            waits = any(each.id == record.id for each in store.driven())
            waits = waits and store.is_waiting(record, worker.name)
        found = None
        if waits:
            with contextlib.suppress(_NothingError), clock.timed("take"):
                found = taken(store, record, answers, worker)
        if found is None:
            time.sleep(LOOK_S)
            continue
        time.sleep(rng.uniform(0.75, 1.25) * trial_seconds)
        outcome = made_outcome(MadeOperator(found.text or ""))
        with clock.timed("tell"):
            answers.tell(found.id, outcome)
    store.presence.leave(worker.name)
    store.close()
    out.put((clock.times, clock.calls["tell"]))


class _NothingError(Exception):
    """Other workers were faster."""


def taken(store: Store, record: StudyRecord, answers: Answers, worker: Worker) -> ProposalRecord:
    """Take a proposal, as a worker does."""
    found = store.lease(record, worker.name, counted=False)
    if found is None:
        raise _NothingError
    answers.hold(found)
    answers.settle(found)
    return found


def propose(study: Study, workers: int, window: tuple[float, float]) -> dict[str, list[float]]:
    """Be the driver; return the times of the proposals."""
    store, (begin, until) = study.store, window
    clock = Clock(begin)
    study.driver = store.presence.drive(study.record, study.worker)
    while time.monotonic() < until:
        if store.waiting(study.record) > kept_waiting(workers):
            time.sleep(DRIVER_LOOK_S)
            continue
        with clock.timed("propose"):
            study.tally()
            study.propose()
    return clock.times


def shared(url: str, study: Study, given: argparse.Namespace) -> dict[str, Any]:
    """Let workers and a driver use the store together."""
    context = get_context("fork")
    out = context.Queue()
    # The first calls of a process take longer: statements are compiled.
    begin = time.monotonic() + 10.0 + 2.5 * given.trial_seconds
    window = (begin, begin + given.seconds)
    arguments = (url, study.record.name, window, given.trial_seconds, out)
    processes = [context.Process(target=work, args=arguments) for _ in range(given.workers)]
    for process in processes:
        process.start()
    found = propose(study, given.workers, window)
    answers = 0
    for _ in processes:
        of_worker, told = out.get(timeout=600)
        answers += told
        for name, times in of_worker.items():
            found.setdefault(name, []).extend(times)
    for process in processes:
        process.join()
    shown: dict[str, Any] = {name: quantiles(times) for name, times in found.items()}
    return shown | {
        "answers": answers,  # also those before the window
        "answers_a_second": len(found["tell"]) / given.seconds,
        "workers": given.workers,
        "trial_seconds": given.trial_seconds,
    }


def quantiles(times: Sequence[float]) -> dict[str, float]:
    """Return the number of the times, and quantiles in milliseconds."""
    ordered = sorted(times)
    found: dict[str, float] = {"count": len(ordered)}
    for percent in (50, 99):
        place = min(len(ordered) - 1, math.ceil(percent / 100 * len(ordered)) - 1)
        found[f"p{percent}_ms"] = 1e3 * ordered[max(0, place)] if ordered else math.nan
    if ordered:
        found["mean_ms"] = 1e3 * statistics.fmean(ordered)
    return found


def timed(call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return what a call returns, and its seconds of the clock and of the processor."""
    began, used = time.perf_counter(), time.process_time()
    found = call()
    return found, {
        "seconds": time.perf_counter() - began,
        "processor_seconds": time.process_time() - used,
    }


def query_rates(store: Store, study: Study, rounds: int = 50) -> dict[str, dict[str, float]]:
    """Time what a search asks of a store, and what `syno status` does."""
    record, random_ = study.record, random.Random(0)
    last = study.state.last or 1
    calls: dict[str, Callable[[], Any]] = {
        "follow": lambda: store.follow(study.state),
        "waiting": lambda: store.waiting(record),
        "able_workers": lambda: store.presence.able(()),
        "studies": store.studies,
        "quarantine_reason": lambda: store.quarantine.reason(
            record, made_operator(random_.randrange(last)).key
        ),
    }
    found = {}
    for name, call in calls.items():
        found[name] = quantiles([timed(call)[1]["seconds"] for _ in range(rounds)])
    return found


def size(store: Store) -> int:
    """The bytes of the store."""
    if store.path is not None:
        beside = [store.path.with_name(store.path.name + end) for end in ("", "-wal", "-shm")]
        return sum(path.stat().st_size for path in beside if path.exists())
    with store.database.reading() as connection:
        return int(connection.scalar(text("SELECT pg_database_size(current_database())")) or 0)


def version(store: Store) -> str:
    """The version of the database."""
    with store.database.reading() as connection:
        query = "version()" if store.path is None else "sqlite_version()"
        return str(connection.scalar(text(f"SELECT {query}")))


def measured(url: str, given: argparse.Namespace) -> dict[str, Any]:
    """Fill the store at an address, continue its study, and return what was measured."""
    space = MadeSpace(given.trials + given.more)
    settings = StudySettings(evaluations=len(space.operators), baseline=False)
    found: dict[str, Any] = {"operators": given.operators, "trials": given.trials}
    with Store.open(url) as store:
        study = Study.create(store, "bench", settings, space)
        study.close()
        rows, filling = timed(lambda: fill(store, study.record, given.operators, given.trials))
        found["fill"] = filling | {"rows": rows, "rows_a_second": rows / filling["seconds"]}
        found["bytes"] = size(store)
    opened, found["open"] = timed(lambda: Store.open(url))  # it checks all rows
    opened.close()
    with unchecked(url) as store:
        study, found["resume"] = timed(lambda: Study.load(store, "bench", space))
        tally, found["first_tally"] = timed(study.tally)
        assert tally.evaluated == given.trials
        _, found["first_propose"] = timed(study.propose)
        found["queries"] = query_rates(store, study)
        _, found["summary"] = timed(lambda: store.summary(study.record))
        store.database.close()  # its connections are not for other processes
        found["shared"] = shared(url, study, given)
        found["database"] = version(store)
        study.close()
    return found


@contextlib.contextmanager
def address(given: argparse.Namespace) -> Iterator[str]:
    """The address of an empty store."""
    if given.server:
        sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
        from postgresql import server

        with server() as made:
            made.start(durable=True)
            try:
                yield made.url
            finally:
                made.stop()
    elif given.store is not None:
        yield given.store
    else:
        with tempfile.TemporaryDirectory(prefix="syno-store-bench-") as folder:
            yield str(Path(folder) / "bench.db")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print or write JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--store", metavar="URL", help="an empty store; default: a new SQLite file")
    where.add_argument("--server", action="store_true", help="start a PostgreSQL server of Debian")
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--operators", type=int, default=1_000_000, help="those of trials included")
    parser.add_argument("--more", type=int, default=100_000, help="operators of the space beside")
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--trial-seconds", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long workers work")
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: print")
    given = parser.parse_args(arguments)
    if given.more < 1:
        parser.error("argument --more: workers need operators without trials, at least one")
    with address(given) as url:
        found = measured(url, given)
    report(found, given.out)


if __name__ == "__main__":
    main()
