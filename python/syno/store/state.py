"""The state of a study: read once, and then kept up by the new events of its log.

Everything that a search decides by changes together with an event of the log: proposals, their
evaluations, and the quarantine. So a state that has seen the first n events reads the events after
them, and the rows of the proposals that these events name. What it holds is what a new reading
of the whole study would give; a test compares the two. The one exception is the number of attempts
at a proposal (`ProposalRecord.attempts`), which changes without an event.

    events after `seen` --> proposals they name --> rows of these proposals --> state
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from syno._util.collector import paused_collector
from syno.store import log, quarantine
from syno.store.evaluation import Evaluation
from syno.store.objective import objective_of
from syno.store.quarantine import Failed
from syno.store.raw import NamedRow
from syno.store.records import (
    BASELINE,
    OPERATOR,
    VALIDATION,
    Environment,
    EventRecord,
    ProposalRecord,
    QuarantineRecord,
    RungResult,
    StudyRecord,
)
from syno.store.summary import as_evaluation, environments, evaluation_rows, is_compared

# Of more proposals than this, the rows of the whole study are read again.
_MOST_READ = 500
# More results than this are merged with the others at once, and not each by itself.
_MOST_SINGLE = 100


@dataclass
class _Known:
    """What is known of one proposal.

    results: the ids of its evaluations on the validation split, ascending.
    given_up: what its results say of the quarantine.
    """

    record: ProposalRecord
    evaluations: tuple[Evaluation, ...] = ()
    results: tuple[int, ...] = ()
    given_up: tuple[QuarantineRecord, ...] = ()


class StudyState:
    """A study up to some event of its log. `Store.follow` reads what is new.

    One thread may use it at a time.

    Attributes:
        study: the study.
        events: its log, in order.
        results: its evaluations on the validation split, as `Store.rung_results`.
        changed: the numbers of the proposals of which something has changed, in that order; a
            number comes once for each reading that changed it.
        opened: the numbers of the pending proposals.
        waiting: those of operators without any result.
        higher: the pending proposals at higher rungs, and the baseline if it is pending.
        completed: the number of operators with a result.
        evaluated: of these, the number that was trained.
        versions: rises with each reading that changed `results` or `evaluations`.
    """

    def __init__(self, study: StudyRecord) -> None:
        self.study = study
        self.events: list[EventRecord] = []
        self.results: list[RungResult] = []
        self.changed: list[int] = []
        self.opened: set[int] = set()
        self.waiting: set[int] = set()
        self.higher: set[int] = set()
        self.completed = 0
        self.evaluated = 0
        self.versions = 0
        self._objective = objective_of(study.settings)
        self._environments: dict[int, Environment] = {}
        self._known: dict[int, _Known] = {}  # in the order of the numbers
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._baselines: list[int] = []
        self._result_ids: list[int] = []  # of `results`
        self._failures: dict[str, list[Failed]] = {}

    @property
    def seen(self) -> int:
        """The number of events of the log that the state holds."""
        return len(self.events)

    @property
    def last(self) -> int | None:
        """The number of the last proposal; None before the first one."""
        return next(reversed(self._known), None)

    @property
    def proposals(self) -> list[ProposalRecord]:
        """All proposals in their order, without their numbers of attempts (0)."""
        return [known.record for known in self._known.values()]

    @property
    def evaluations(self) -> list[Evaluation]:
        """All evaluations, as `Store.evaluations`."""
        return [each for known in self._known.values() for each in known.evaluations]

    @property
    def baselines(self) -> list[Evaluation]:
        """The evaluations of the original network, as in `evaluations`."""
        return [each for ask in self._baselines for each in self._known[ask].evaluations]

    @property
    def originals(self) -> list[ProposalRecord]:
        """The proposals of the original network."""
        return [self._known[ask].record for ask in self._baselines]

    @property
    def quarantined(self) -> list[QuarantineRecord]:
        """The operators in quarantine, as `Quarantine.of`."""
        keys = {found.key for known in self._known.values() for found in known.given_up}
        found = [self.in_quarantine(key) for key in sorted(keys | self._failures.keys())]
        return sorted((each for each in found if each is not None), key=lambda each: each.ask)

    def proposal(self, ask: int) -> ProposalRecord:
        """Return the proposal with this number, without its number of attempts (0)."""
        return self._known[ask].record

    def evaluations_of(self, ask: int) -> tuple[Evaluation, ...]:
        """Return the evaluations of the proposal with this number, in the order of storage."""
        return self._known[ask].evaluations

    def results_of(self, ask: int) -> Iterator[RungResult]:
        """Return those of `results` that belong to the proposal with this number."""
        for identity in self._known[ask].results:
            yield self._result(identity)

    def has_key(self, key: str) -> bool:
        """Whether an operator with this key was proposed."""
        return key in self._by_key

    def in_quarantine(self, key: str) -> QuarantineRecord | None:
        """Return why an operator, or the baseline (key `baseline`), is in quarantine."""
        asks = self._baselines if key == BASELINE else self._by_key.get(key, [])
        found = [
            QuarantineRecord(key, failed.text, ask, *failed[2:])
            for failed in self._failures.get(key, [])
            for ask in asks
            if self._known[ask].record.text == failed.text
        ]
        if found:
            return min(found, key=lambda each: each.ask)
        return next((each for ask in asks for each in self._known[ask].given_up), None)

    # Reading.

    def read(self, connection: Connection) -> bool:
        """Read what is new, all at one moment of the log; return whether there was anything.

        Args:
            connection: a transaction whose statements see one state, or which has locked the study.
        """
        with paused_collector():
            return self._read(connection)

    def _read(self, connection: Connection) -> bool:
        events = log.events(connection, self.study.id, after=self.seen)
        if not events:
            return False
        touched = self._touched(events) if self.events else None
        if touched is not None and len(touched) > _MOST_READ:
            touched = None
        records = log.proposals(connection, self.study.id, touched)
        rows: dict[int, list[NamedRow]] = defaultdict(list)
        for row in evaluation_rows(connection, self.study.id, touched):
            rows[row.ask].append(row)
        there = {row.environment_id for own in rows.values() for row in own}
        if there - self._environments.keys():
            self._environments |= environments(connection, there - self._environments.keys())
        keys = None if not self.events else self._failed_keys(events, records)
        failures: list[Failed] = []
        if keys is None or keys:
            failures = quarantine.failures(connection, self.study.id, keys)
        # Nothing can fail from here on, so that the state is never between two moments.
        self._take(records, rows)
        for key in keys or ():
            self._failures.pop(key, None)
        for failed in failures:
            self._failures.setdefault(failed.key, []).append(failed)
        self.events += events
        return True

    def _touched(self, events: Iterable[EventRecord]) -> set[int]:
        """The ids of the proposals whose rows have changed with these events."""
        found: set[int] = set()
        for event in events:
            asks: Sequence[int] = ()
            if "proposal" in event.data:
                found.add(event.data["proposal"])
            elif event.kind == "released":
                key = event.data["key"]
                asks = self._baselines if key == BASELINE else self._by_key.get(key, [])
            elif event.kind == "distrusted":
                # One that is not known yet was asked for after the last reading.
                asks = [ask for ask in event.data["asks"] if ask in self._known]
            found |= {self._known[ask].record.id for ask in asks}
        return found

    @staticmethod
    def _failed_keys(events: Iterable[EventRecord], records: Iterable[ProposalRecord]) -> set[str]:
        """The keys of the operators whose failures have changed with these events."""
        by_id = {record.id: record.key for record in records}
        found: set[str] = set()
        for event in events:
            if event.kind == "failed":
                found.add(by_id[event.data["proposal"]] or "")
            elif event.kind == "released":
                found.add(event.data["key"])
        return found

    def _take(self, records: Collection[ProposalRecord], rows: dict[int, list[NamedRow]]) -> None:
        """Replace what is known of these proposals."""
        before = [self._known[record.ask] for record in records if record.ask in self._known]
        for known in before:
            self._count(known.record, -1)
        # An id that was taken back may be that of another evaluation now: first all go.
        removed = [
            (identity, self._result(identity)) for known in before for identity in known.results
        ]
        self._remove([identity for identity, _ in removed])
        new: list[tuple[int, RungResult]] = []
        for record in records:
            own = rows.get(record.ask, [])
            self._take_one(replace(record, attempts=0) if record.attempts else record, own)
            new += [(row.id, _made(row)) for row in own if row.split == VALIDATION]
        new.sort(key=lambda each: each[0])
        self._insert(new)
        # A proposal may be read again whose results are the same.
        after = {record.ask: self._known[record.ask].evaluations for record in records}
        same = {known.record.ask: known.evaluations for known in before}
        is_new = sorted(removed, key=lambda each: each[0]) != new
        self.versions += is_new or any(own != same.get(ask, ()) for ask, own in after.items())

    def _result(self, identity: int) -> RungResult:
        return self.results[bisect.bisect_left(self._result_ids, identity)]

    def _take_one(self, record: ProposalRecord, rows: list[NamedRow]) -> None:
        known = _Known(
            record,
            tuple(
                as_evaluation(row, self._objective, self._environments[row.environment_id])
                for row in rows
                if is_compared(row)
            ),
            tuple(row.id for row in rows if row.split == VALIDATION),
            tuple(quarantine.by_results(record, rows)),
        )
        if record.ask not in self._known:
            if record.kind == BASELINE:
                self._baselines.append(record.ask)
            elif record.key is not None:
                self._by_key[record.key].append(record.ask)
        self._known[record.ask] = known
        self._count(record, 1)
        self.changed.append(record.ask)

    def _remove(self, identities: Collection[int]) -> None:
        if len(identities) > _MOST_SINGLE:
            gone = set(identities)
            left = [
                (identity, result)
                for identity, result in zip(self._result_ids, self.results, strict=True)
                if identity not in gone
            ]
            self._result_ids, self.results = [i for i, _ in left], [r for _, r in left]
            return
        for identity in identities:
            place = bisect.bisect_left(self._result_ids, identity)
            del self._result_ids[place], self.results[place]

    def _insert(self, new: Sequence[tuple[int, RungResult]]) -> None:
        if len(new) > _MOST_SINGLE:
            both = [*zip(self._result_ids, self.results, strict=True), *new]
            both.sort(key=lambda each: each[0])
            self._result_ids, self.results = [i for i, _ in both], [r for _, r in both]
            return
        for identity, result in new:
            place = bisect.bisect_left(self._result_ids, identity)
            self._result_ids.insert(place, identity)
            self.results.insert(place, result)

    def _count(self, record: ProposalRecord, sign: int) -> None:
        """Count a proposal, or (-1) count it no more."""
        is_operator = record.kind == OPERATOR
        if is_operator and record.status is not None:
            self.completed += sign
            self.evaluated += sign * record.is_evaluated
        move = set.add if sign > 0 else set.discard
        if record.is_open:
            move(self.opened, record.ask)
            if is_operator and record.status is None:
                move(self.waiting, record.ask)
            if not is_operator or record.rung_index > 0:
                move(self.higher, record.ask)


def _made(row: NamedRow) -> RungResult:
    return RungResult(
        row.ask, row.kind, row.rung_index, row.rung, row.status, row.accuracy, row.seconds
    )
