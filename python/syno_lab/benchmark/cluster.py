"""A search with many workers in simulated time, by the real driver and the real store.

The simulation has a clock, and the store takes its time from it. What a driver and a worker do with
the store is done for real, one call after the other, and measured. In the simulation a call takes
as long as it took, and the latency of the database for each message. A call that locks the study
waits until those before it have released the lock. An evaluation takes simulated time only.

    driver:  look --> propose --> ...        worker:  take --> evaluate --> tell --> take ...
                        |                                |                   |
                        +---------- lock of the study ---+-------------------+
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import heapq
import itertools
import random
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.store import (
    HEARTBEAT_S,
    AlreadyCompletedError,
    LeaseLostError,
    Outcome,
    ProposalRecord,
    Store,
    VerificationResult,
    Worker,
)
from syno.store.lease import EXPIRES_S
from syno.store.records import digest
from syno.study import Study
from syno.study.answers import Answers, Proposal
from syno.study.driver import LOOK_S as DRIVER_LOOK_S
from syno.study.driver import PAUSE_S, Driver, kept_waiting
from syno.study.observer import StudyObserver
from syno.study.stoppers import StudyStopper
from syno.study.worker import LOOK_S as WORKER_LOOK_S
from syno.study.worker import MOST_LOSSES
from syno_lab.benchmark.measured_store import Cost

# An evaluation takes between 1 - _SPREAD and 1 + _SPREAD of the mean; a straggler so much longer.
_SPREAD = 0.25
SLOWER = 10.0
# The time after which a lost worker is started again.
RESTART_S = 30.0
# A suspended worker goes on after so much more than the time after which its lease expires.
_SUSPENDED = 1.5
_START = datetime.datetime(2026, 1, 1)

# The operations of the driver.
DRIVER = ("propose", "look")

# A function of a call: what it returns, and its cost.
Measure = Callable[[Callable[[], Any]], tuple[Any, Cost]]


@dataclass(frozen=True)
class Load:
    """What the workers of a simulation are like.

    workers: their number.
    trial_seconds: the mean time of an evaluation that is no straggler.
    failures: the share of the evaluations during which the worker is lost: half of them die, and
        half are suspended until another worker has the lease.
    stragglers: the share of the evaluations that take `SLOWER` times as long.
    latency: of each message to the database, in seconds.
    """

    workers: int
    trial_seconds: float
    failures: float = 0.0
    stragglers: float = 0.0
    latency: float = 0.0


@dataclass
class Operation:
    """The calls of one kind: seconds of each, and how long each held the lock."""

    seconds: list[float] = field(default_factory=list)
    held: list[float] = field(default_factory=list)


@dataclass
class Recorded:
    """What happened since a moment of the simulation.

    began: the moment; ended: when the simulation stopped.
    answers: results that count.
    missing: of each proposal, the number of earlier ones whose results were missing.
    unread: of each proposal, how many of these evaluations had ended.
    useful, wasted: seconds of evaluations whose result counts, and of others.
    lost, dropped: evaluations whose worker died, and whose answer came too late.
    polls: looks of idle workers that would have found nothing, which are not made for real.
    """

    began: float
    ended: float = 0.0
    answers: int = 0
    missing: list[int] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)
    useful: float = 0.0
    wasted: float = 0.0
    lost: int = 0
    dropped: int = 0
    polls: int = 0
    locked: float = 0.0
    driving: float = 0.0
    operations: dict[str, Operation] = field(default_factory=dict)


class _Elsewhere(Worker):
    """A worker on another machine, of which only heartbeats are known."""

    _counted = itertools.count(1)

    def __init__(self) -> None:
        number = next(_Elsewhere._counted)
        self.name = f"{uuid.uuid4().hex[:16]}:{number}:1:1"


class _Driver(Driver):
    """A driver that says when it would wait, and does not."""

    is_idle = False

    def wait(self, seen: int) -> None:
        self.is_idle = True


class _Lock:
    """The lock of the study: calls take it in the order in which they came."""

    def __init__(self) -> None:
        self.is_held = False
        self.waiting: deque[Callable[[], None]] = deque()


@dataclass
class _Place:
    """One worker, and the one that is started when it is lost."""

    worker: Worker
    answers: Answers
    is_first: bool = True  # whether no evaluation has begun here


class SimulatedCluster:
    """A simulation: `run` until so many answers have been stored.

    Args:
        store: an open store, whose clock the simulation sets.
        study: a study of it, without a baseline.
        stopper: of the study.
        load: the workers.
        measure: measures calls of the store.
        seed: of the random numbers.
    """

    def __init__(
        self,
        store: Store,
        study: Study,
        stopper: StudyStopper,
        load: Load,
        measure: Measure,
        seed: int,
    ) -> None:
        self._store, self._study, self._load, self._measure = store, study, load, measure
        self._random = random.Random(f"{seed} {load.workers}")
        self._now = 0.0
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._lock = _Lock()
        self._locks: dict[str, bool] = {}  # whether calls of a kind take the lock
        self._free = 0  # proposals that a worker may take, as far as is known without a look
        self._alive = 0
        self._made = 0  # proposals, before the step of the driver
        self._names: list[str] = []  # of all workers
        self._ended = 0  # evaluations that have ended, and whose result is not stored yet
        self._has_news = True
        self.recorded = Recorded(0.0)
        self.answers = 0
        store.database.clock = self._time
        self._driver = _Driver(study, stopper, StudyObserver())
        self._driver.take_over()

    def _time(self) -> str:
        moment = _START + datetime.timedelta(seconds=self._now)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def run(self, warm: int, answers: int, progress: Callable[[int], None]) -> Recorded:
        """Simulate until so many answers count.

        Args:
            warm: the number of answers before what is recorded.
            answers: the number of answers in all.
            progress: is called with the number of answers.

        Returns:
            What happened after the first `warm` answers.
        """
        for _ in range(self._load.workers):
            self._at(self._random.uniform(0, WORKER_LOOK_S), self._come)
        self._at(0.0, self._drive)
        before = -1
        while self.answers < answers:
            if not self._events:
                raise UserError("the simulation has come to a stop before its end")
            self._now, _, call = heapq.heappop(self._events)
            call()
            if self.answers != before:
                before = self.answers
                progress(before)
                if before == warm:
                    self.recorded = Recorded(self._now)
        self.recorded.ended = self._now
        self._driver.leave()
        for name in self._names:  # another simulation begins at an earlier time
            self._store.presence.leave(name)
        return self.recorded

    def _at(self, moment: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._order), call))

    def _do(self, name: str, call: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Make a call of the store, once it may lock; `then` follows at its end."""
        begin = functools.partial(self._begin, name, call, then)
        if self._lock.is_held and self._locks.get(name, True):
            self._lock.waiting.append(begin)
        else:
            begin()

    def _begin(self, name: str, call: Callable[[], Any], then: Callable[[Any], None]) -> None:
        found, cost = self._measure(call)
        seconds, held = cost.total(self._load.latency), cost.held(self._load.latency)
        if name in DRIVER:  # it was named by what was expected
            name = "propose" if self._driver.made > self._made else "look"
            self._made = self._driver.made
        self._locks[name] = held > 0
        own = self.recorded.operations.setdefault(name, Operation())
        own.seconds.append(seconds)
        own.held.append(held)
        if name in DRIVER:
            self.recorded.driving += seconds
        if held:
            self._lock.is_held = True
            self.recorded.locked += held
            self._at(self._now + held, self._release)
        self._at(self._now + seconds, functools.partial(then, found))

    def _release(self) -> None:
        lock = self._lock
        lock.is_held = False
        # Calls that were expected to lock may not: then the next one begins at the same moment.
        while lock.waiting and not lock.is_held:
            lock.waiting.popleft()()

    # The driver.

    def _drive(self) -> None:
        wanted = kept_waiting(self._alive)
        name = "propose" if self._free <= wanted else "look"
        self._driver.is_idle = self._has_news = False
        self._do(name, self._step, self._driven)

    def _step(self) -> Any:
        before, own = self._driver.made, self._ended
        reason = self._driver.step()
        if self._driver.made > before:
            self._free += 1
            self.recorded.missing.append(len(self._study.state.waiting))
            self.recorded.unread.append(own)
        elif self._free <= kept_waiting(self._alive):
            self._free = self._store.waiting(self._study.record)
        return reason

    def _driven(self, reason: Any) -> None:
        if reason is not None:
            return
        if self._driver.is_idle:
            self._rest(self._now + PAUSE_S)
        else:
            self._drive()

    def _rest(self, until: float) -> None:
        """Look for news at every moment at which the driver looks for them."""

        def look() -> None:
            if self._has_news or self._now >= until:
                self._drive()
            else:
                self._rest(until)

        self._at(self._now + DRIVER_LOOK_S, look)

    # Workers.

    def _come(self) -> None:
        """Start a worker."""
        worker, study = _Elsewhere(), self._study
        self._names.append(worker.name)
        answers = Answers(self._store, study.record, study.settings, study.rules, worker)
        answers.most_losses, answers.counts_attempts = MOST_LOSSES, False
        place = _Place(worker, answers)
        announce = functools.partial(
            self._store.presence.announce, worker.name, answers.environment, ()
        )

        def came(_: object) -> None:
            self._alive += 1
            self._look(place)

        self._do("announce", announce, came)

    def _look(self, place: _Place) -> None:
        if self._free > 0:
            self._do(
                "take", functools.partial(self._take, place), functools.partial(self._took, place)
            )
        else:
            self.recorded.polls += 1
            self._at(self._now + WORKER_LOOK_S, functools.partial(self._look, place))

    def _take(self, place: _Place) -> ProposalRecord | None:
        store, name = self._store, place.worker.name
        for record in store.driven():
            if not store.is_waiting(record, name):
                continue
            found = store.lease(record, name, counted=False)
            if found is None:
                continue
            place.answers.hold(found)
            self._free -= 1
            if not place.answers.settle(found):
                return found
        if self._free > 0:
            self._free = store.waiting(self._study.record)
        return None

    def _took(self, place: _Place, record: ProposalRecord | None) -> None:
        if record is None:
            self._at(self._now + WORKER_LOOK_S, functools.partial(self._look, place))
            return
        seconds = self._load.trial_seconds * self._random.uniform(1 - _SPREAD, 1 + _SPREAD)
        if self._random.random() < self._load.stragglers:
            seconds *= SLOWER
        if place.is_first:
            # As if it had begun some time ago. Otherwise all would end at the same time again and
            # again, and the throughput would depend on when the counting stops.
            seconds *= self._random.random()
            place.is_first = False
        end = functools.partial(self._evaluated, place, record, seconds)
        if self._random.random() >= self._load.failures:
            self._beats(record, place, self._now + seconds)
            self._at(self._now + seconds, end)
            return
        until = seconds * self._random.random()
        last = self._now + until - until % HEARTBEAT_S
        self._beats(record, place, self._now + until)
        # Without heartbeats, another worker may take the proposal.
        self._at(last + EXPIRES_S, self._expire)
        if self._random.random() < 0.5:
            self._at(self._now + until, functools.partial(self._die, place, until))
        else:
            self._at(self._now + seconds + _SUSPENDED * EXPIRES_S, end)

    def _expire(self) -> None:
        self._free += 1

    def _beats(self, record: ProposalRecord, place: _Place, until: float) -> None:
        """Renew the lease while the evaluation runs."""
        if self._now + HEARTBEAT_S >= until:
            return

        def beat() -> None:
            renew = functools.partial(self._store.renew, record.id, place.worker.name)
            self._do("renew", renew, lambda _: None)
            self._beats(record, place, until)

        self._at(self._now + HEARTBEAT_S, beat)

    def _die(self, place: _Place, seconds: float) -> None:
        self._alive -= 1
        self.recorded.lost += 1
        self.recorded.wasted += seconds
        self._at(self._now + RESTART_S, self._come)

    def _evaluated(self, place: _Place, record: ProposalRecord, seconds: float) -> None:
        self._ended += 1
        tell = functools.partial(self._tell, place, record, seconds)
        self._do("tell", tell, functools.partial(self._told, place, seconds))

    def _tell(self, place: _Place, record: ProposalRecord, seconds: float) -> bool:
        proposal = Proposal(record.id, record.ask, record.kind, None)
        operator = self._study.operator(record.text or "")
        outcome = made_outcome(operator, seconds)
        self._ended -= 1
        self._has_news = True
        try:
            place.answers.tell(record.id, outcome)
        except (AlreadyCompletedError, LeaseLostError) as error:
            place.answers.drop(proposal, error, outcome)
            return False
        return True

    def _told(self, place: _Place, seconds: float, counts: bool) -> None:
        if counts:
            self.answers += 1
            self.recorded.answers += 1
            self.recorded.useful += seconds
        else:
            self.recorded.dropped += 1
            self.recorded.wasted += seconds
        self._look(place)


def made_outcome(operator: Operator, seconds: float) -> Outcome:
    """Make a result of an operator, which follows from its key, as large as real ones are."""
    value = int.from_bytes(hashlib.sha256(operator.key.encode()).digest()[:6], "big") / 2**48
    return Outcome(
        "ok",
        accuracy=0.5 + 0.4 * value,
        rung="simulated",
        recipe={"precision": "float32"},
        seconds=seconds,
        macs=int(1e6 + 1e6 * value),
        params=int(1e4 + 1e4 * value),
        primitives=operator.primitives(),
        verification=VerificationResult(
            digest(operator.key) * 2,
            [{"N": 1, "C_in": 16, "C_out": 16, "H": 32}],
            "simulated",
            0,
            passed=True,
            max_error=0.0,
        ),
        details={"losses": [2.0 - value / (epoch + 1) for epoch in range(3)], "loss": 1.5 - value},
    )
