"""A study: search and evaluation communicate by `ask` and `tell` only.

                 propose(history)              evaluate
      Method  <------------------  Study  <---------------->  Evaluator, or a custom trainer
                                     |  ask(n) / tell(id, outcome)
                                     v
                                   Store      proposals, and the result of each

The history is read from the store before each proposal, so the method cannot distinguish a study
that was killed and resumed from one that was not.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass
from itertools import takewhile

from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.store import (
    AlreadyCompletedError,
    AskTakenError,
    EventRecord,
    LeaseLostError,
    LimitReachedError,
    Outcome,
    ProposalRecord,
    QuarantineRecord,
    RungResult,
    Store,
    StudyRecord,
    Worker,
    capture_environment,
    check_search,
    current_settings,
)
from syno.store.documents import TrainingSettings
from syno.store.objectives import objectives_of
from syno.store.overview import running_seconds, since_progress
from syno.store.records import BASELINE, ERROR, GIVEN_UP, MOST_FAILURES, OK, OPERATOR, REJECTED
from syno.study.candidates import Candidates, Space
from syno.study.fidelity.ladder import Ladder
from syno.study.fidelity.promotions import Promotions
from syno.study.methods import History, Method, make_method
from syno.study.methods.history import make_history, told_after
from syno.study.ratings import as_result, rated
from syno.study.settings import Limits, StudySettings
from syno.study.stoppers import StopReason, Tally

# An operator whose evaluation ended the process this often is given up, see `max_attempts`.
MAX_ATTEMPTS = 5
# The kind of the event of an operator that the user proposes.
ENQUEUED = "enqueued"


@dataclass(frozen=True)
class Proposal:
    """A pending evaluation: `operator` is None for the baseline network (kind `baseline`).

    rung: the index of the rung, from 0 for the lowest; None without a ladder.
    """

    id: int
    ask: int
    kind: str
    operator: Operator | None
    attempts: int = 1
    rung: int | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether this is the evaluation of the baseline network."""
        return self.kind == BASELINE


class Study:
    """A study in a store, with the space that it samples from. One thread may use it at a time.

    Study.create(store, name, settings, space)      makes a new study
    Study.load(store, name, space)                  resumes a study

    Raises:
        UserError: if the space is not the one that the study was started with.
    """

    def __init__(
        self,
        store: Store,
        record: StudyRecord,
        settings: StudySettings,
        space: Space,
        candidates: Candidates,
        method: Method,
    ) -> None:
        self.store = store
        self.record = record
        self.settings = settings
        self.ladder = None if settings.ladder is None else Ladder.from_json(settings.ladder)
        self.objectives = objectives_of(settings.to_json())
        self.exhausted = False
        # Whether the end of this process during an evaluation counts as an attempt: where
        # evaluations have processes of their own, it says nothing about the operator.
        self.counts_attempts = True
        # Whether a stopper looks at the progress, which takes time to count.
        self.counts_progress = settings.patience is not None
        self._leased: dict[int, bool] = {}  # proposals that are open here, whether they count
        self._space = space
        self._candidates = candidates
        self._method = method
        self._by_text: dict[str, Operator] | None = None
        self._log: list[EventRecord] = []  # as far as it was read
        # The number of results since progress, with the results that it was counted in.
        self._stale: tuple[list[RungResult], int] = ([], 0)
        self._worker = Worker()
        self._environment = capture_environment(
            threads=int(settings.latency.get("threads", 1)), rules=space.rules
        )
        self._began = time.monotonic()
        self._seconds_before = 0.0
        self._results_before = len(store.rung_results(record))

    @classmethod
    def create(cls, store: Store, name: str, settings: StudySettings, space: Space) -> Study:
        """Make a new study. A `name` that ends in "-" is completed with a free number."""
        chosen = _choices(settings, space)  # a mistake there must not leave a study behind
        record = store.create_study(
            name,
            specification=space.specification,
            settings=settings.to_json(),
            seed=settings.seed,
        )
        study = cls(store, record, settings, space, *chosen)
        study._check_space(())
        store.append_event(record, "started", {})
        return study

    @classmethod
    def load(
        cls,
        store: Store,
        name: str | int | None,
        space: Space,
        *,
        evaluations: int | None = None,
        seconds: float | None = None,
        training: TrainingSettings | None = None,
        patience: int | None = None,
    ) -> Study:
        """Resume a study. The limits that are given replace its settings."""
        record = store.study(name)
        events = store.events(record)
        limits: Limits = {
            "evaluations": evaluations,
            "seconds": seconds,
            "training": training,
            "patience": patience,
        }
        settings = settings_of(record, events).changed(**limits)
        study = cls(store, record, settings, space, *_choices(settings, space))
        study._check_space(tuple(events))
        study._seconds_before = running_seconds(events)
        given = {name: value for name, value in limits.items() if value is not None}
        store.append_event(record, "resumed", given)
        return study

    def _check_space(self, events: tuple[EventRecord, ...]) -> None:
        """Store a digest of the space, or compare the space with the stored digest."""
        before = next((e.data for e in events if e.kind == "space"), None)
        if before is None:
            self.store.append_event(
                self.record,
                "space",
                {
                    "operators": len(self._space.operators),
                    "keys": len(self._candidates),
                    "digest": self._candidates.digest,
                    "rules": self._space.rules,
                    "rejections": self._space.rejections(),
                },
            )
        elif before["digest"] != self._candidates.digest:
            raise UserError(
                f"study '{self.record.name}' cannot be continued: its space had {before['keys']} "
                f"operators (rules {before['rules']}), now it has {self.keys} different ones "
                f"(rules {self._space.rules})\n"
                "  what to do: resume it with the version of Syno that started it, or start a "
                "new study; "
                "its results stay in the store"
            )

    @property
    def keys(self) -> int:
        """The number of distinct semantic keys in the space."""
        return len(self._candidates)

    @property
    def worker(self) -> str:
        """The name with which this object leases proposals."""
        return self._worker.name

    @property
    def max_attempts(self) -> int:
        """The number of attempts at an operator that may end with the process of the search."""
        return int(self.settings.training.get("max_attempts") or MAX_ATTEMPTS)

    def ask(self, count: int = 1, *, evaluations: int | None = None) -> list[Proposal]:
        """Return up to `count` proposals and store them as pending.

        They are, in this order:

        1. Proposals whose evaluation was interrupted, with their ids.
        2. With a ladder, promotions to a higher rung, by the rule in `asha.py`.
        3. The baseline, in a study without one.
        4. Operators of `enqueue`.
        5. New operators of the search method.

        Args:
            count: the most proposals to return.
            evaluations: the limit of operators that are evaluated, or are being evaluated by any
                process; None for no limit.

        Returns:
            The proposals. They are fewer than `count` if the space is exhausted or the limit is
            reached.
        """
        found: list[Proposal] = []
        while len(found) < count:
            try:
                proposal = self._reopened() or self._promoted() or self._proposed(evaluations)
            except (AskTakenError, AlreadyCompletedError, LeaseLostError):
                continue  # another process was faster
            except LimitReachedError:
                break
            if proposal is None:
                self.exhausted = True
                break
            found.append(proposal)
        return found

    def next_operator(self, evaluations: int | None = None) -> Operator | None:
        """Return the new operator that `ask` will probably propose next; None if nothing says so.

        It is not proposed by this. Results of open proposals may change it.
        """
        records = self.store.proposals(self.record)
        count = sum(p.kind == OPERATOR and (p.is_open or p.is_evaluated) for p in records)
        if not records or (evaluations is not None and count >= evaluations):
            return None
        found = self._enqueued(records)
        if found is None and self._method.foresees:
            found = self._method.propose(self._history(records[-1].ask + 1, records))
        return found

    def enqueue(self, operator: Operator) -> None:
        """Let `ask` propose an operator before those of the search method.

        The study remembers it, so that a resumed study proposes it, too. An operator that was
        proposed already is not proposed again.

        Args:
            operator: an operator under the specification of the space; `syno.search` fits others.
        """
        data = {"text": operator.text, "key": operator.key}
        self.store.append_event(self.record, ENQUEUED, data)

    def tell(self, proposal: int, outcome: Outcome) -> None:
        """Store the result of a proposal.

        Raises:
            UserError: for an id that `ask` did not return.
            AlreadyCompletedError: if the proposal has a result.
            LeaseLostError: if another process took the proposal over.
        """
        worker = self.worker if proposal in self._leased else None
        self.store.tell(proposal, outcome, self._environment, worker)
        self._leased.pop(proposal, None)

    def failed(self, proposal: int, kind: str, reason: str) -> bool:
        """Count a failure that may have an external cause.

        Args:
            proposal: the id of the proposal.
            kind: as `failures.failure_kind` returns it.
            reason: what happened, in words.

        Returns:
            Whether the operator is now in quarantine. If not, the proposal stays pending and is
            evaluated once more.

        Raises:
            LeaseLostError: if another process took the proposal over.
        """
        if proposal in self._leased and not self.store.renew(proposal, self.worker):
            raise LeaseLostError(f"proposal {proposal} was taken over by another process")
        return self.store.add_failure(proposal, kind, reason) >= MOST_FAILURES

    def release(self, proposal: int) -> None:
        """Give a proposal back without a result. The next `ask` of any process returns it."""
        counted = self._leased.pop(proposal, True)
        self.store.release(proposal, self.worker, counted=counted)

    def drop(self, proposal: Proposal, error: UserError) -> None:
        """Log that a result is not stored, because another process completed or took the proposal.

        Args:
            proposal: the proposal.
            error: the reason.
        """
        self._leased.pop(proposal.id, None)
        data = {"proposal": proposal.id, "ask": proposal.ask, "reason": str(error)}
        self.store.append_event(self.record, "dropped", data)

    def looks_best(self, proposal: Proposal, outcome: Outcome) -> bool:
        """Whether a result belongs to the best of its rung, if its value is right.

        It satisfies the constraints, and no other result of its rung beats it.
        """
        if outcome.status != OK:
            return False
        result = as_result(proposal.ask, outcome)
        rung = proposal.rung or 0
        others = [
            e
            for e in self.store.evaluations(self.record)
            if e.kind == OPERATOR and e.rung_index == rung and e.status == OK
        ]
        return result in self.objectives.archive([*others, result])

    def stop(self, reason: StopReason) -> None:
        """Log why this run ended."""
        data = {"reason": reason.name, "text": reason.text}
        self.store.append_event(self.record, "stopped", data)

    def close(self) -> None:
        """Release the leases of this object. The store stays open."""
        self._worker.close()

    def tally(self) -> Tally:
        """Count the evaluations of the study, over all its runs."""
        records = self.store.proposals(self.record)
        completed = [p for p in records if p.kind == OPERATOR and p.status is not None]
        evaluated = sum(p.is_evaluated for p in completed)
        seconds = self._seconds_before + time.monotonic() - self._began
        # The errors of earlier runs do not count, because their cause may be gone.
        results = self.store.rung_results(self.record)
        here = [r for r in results[self._results_before :] if r.kind == OPERATOR]
        errors = sum(1 for _ in takewhile(lambda r: r.status == ERROR, reversed(here)))
        return Tally(
            evaluated,
            len(completed) - evaluated,
            seconds,
            self.exhausted,
            errors,
            due=self._due(records, results),
            stale=self._since_progress(results),
        )

    def _since_progress(self, results: list[RungResult]) -> int:
        if not self.counts_progress:
            return 0
        if results != self._stale[0]:  # it reads the whole study
            self._stale = results, since_progress(self.store.summary(self.record))
        return self._stale[1]

    def checkpoints_needed(self, *, finished: bool = False) -> set[tuple[str, int]]:
        """List the checkpoints that later rungs may continue from: see `Promotions`.

        Args:
            finished: only list those of evaluations that run in other processes.
        """
        promotions = self._promotions()
        if promotions is None:
            return set()
        if finished:
            return promotions.pending_checkpoints()
        return promotions.needed_checkpoints(self.settings.evaluations)

    def _due(self, records: list[ProposalRecord], results: list[RungResult]) -> int:
        """Count the evaluations that are due beside new operators: promotions, interrupted
        evaluations that no process works on, and a released baseline."""
        opened = {p.ask for p in records if p.is_open and (p.rung_index > 0 or p.kind == BASELINE)}
        interrupted = opened & set(self.store.unleased(self.record)) if opened else set()
        if self.ladder is None:
            return len(interrupted)
        return len(interrupted) + len(Promotions(self.ladder, records, results).due())

    def _promotions(self) -> Promotions | None:
        if self.ladder is None:
            return None
        records, results = self.store.proposals(self.record), self.store.rung_results(self.record)
        return Promotions(self.ladder, records, results)

    def _promoted(self) -> Proposal | None:
        """Promote the next operator, or the baseline before it.

        Raises:
            AskTakenError: if another process promoted it, or stored a result that may change which
                operator is next.
        """
        if self.ladder is None:
            return None
        results = self.store.rung_results(self.record)
        promotions = Promotions(self.ladder, self.store.proposals(self.record), results)
        due = promotions.due()
        if not due:
            return None
        record, rung = promotions.proposal(due[0]), due[0].rung
        counted = self.counts_attempts
        self.store.promote(
            record.id, rung, self._worker.name, results=len(results), counted=counted
        )
        self._leased[record.id] = counted
        return self._proposal(dataclasses.replace(record, rung_index=rung, attempts=int(counted)))

    def _reopened(self) -> Proposal | None:
        counted = self.counts_attempts
        while record := self.store.lease_open(self.record, self.worker, counted=counted):
            self._leased[record.id] = counted
            found = self._quarantined().get(record.key or "")
            if found is not None:  # the run was killed before it stored the result
                self.tell(record.id, Outcome(ERROR, reason=in_quarantine(found.reason)))
            elif not self._is_given_up(record):
                return self._proposal(record)
            else:
                reason = GIVEN_UP.format(self.max_attempts)
                self.tell(record.id, Outcome(ERROR, reason=reason))
        return None

    def _is_given_up(self, record: ProposalRecord) -> bool:
        """Whether the process of an operator ended too often. The baseline is never given up."""
        if record.kind == BASELINE or not self.counts_attempts:
            return False
        return record.attempts > self.max_attempts

    def _quarantined(self) -> dict[str, QuarantineRecord]:
        return {found.key: found for found in self.store.quarantined(self.record)}

    def _proposed(self, evaluations: int | None) -> Proposal | None:
        while True:
            if evaluations is not None:  # choosing may take long
                self.store.check_limit(self.record, evaluations, self.worker)
            records = self.store.proposals(self.record)
            number = records[-1].ask + 1 if records else int(not self.settings.baseline)
            operator = None
            if number > 0:
                operator = self._enqueued(records)
                operator = operator or self._method.propose(self._history(number, records))
                if operator is None:
                    return None
            stored = None if operator is None else (operator.text, operator.key)
            counted = self.counts_attempts
            record = self.store.ask(
                self.record, number, stored, self.worker, limit=evaluations, counted=counted
            )
            self._leased[record.id] = counted
            found = self._quarantined().get(record.key or "")
            if found is None:
                rung = None if self.ladder is None else 0
                return Proposal(record.id, record.ask, record.kind, operator, record.attempts, rung)
            # A method may propose an operator again; the result lets it propose another one.
            reason = f"it is in quarantine: {found.reason}"
            self.tell(record.id, Outcome(REJECTED, reason=reason))

    def _enqueued(self, records: list[ProposalRecord]) -> Operator | None:
        """Return the first enqueued operator that is not proposed yet."""
        proposed = {record.key for record in records}
        for event in self._events():
            if event.kind == ENQUEUED and event.data["key"] not in proposed:
                return self._operator(event.data["text"])
        return None

    def _events(self) -> list[EventRecord]:
        """Return the log of the study; only its new events are read."""
        self._log += self.store.events(self.record, after=len(self._log))
        return self._log

    def _proposal(self, record: ProposalRecord) -> Proposal:
        operator = None if record.text is None else self._operator(record.text)
        rung = None if self.ladder is None else record.rung_index
        return Proposal(record.id, record.ask, record.kind, operator, record.attempts, rung)

    def _history(self, number: int, records: list[ProposalRecord]) -> History:
        results = self.store.rung_results(self.record)
        evaluations = self.store.evaluations(self.record)
        if not (self.objectives.are_default and self.objectives.objective.is_share):
            rungs = 1 if self.ladder is None else len(self.ladder.rungs)
            values = rated(self.objectives, evaluations, rungs)
        elif self.ladder is not None:
            values = Promotions(self.ladder, records, results).values()
        else:
            values = {r.ask: r.accuracy or 0.0 for r in reversed(results) if r.is_evaluated}
        told = told_after(self._events(), records)
        return make_history(
            number,
            records,
            evaluations,
            values,
            self.objectives,
            told,
            has_rungs=self.ladder is not None,
        )

    def _operator(self, text: str) -> Operator:
        if self._by_text is None:
            self._by_text = {c.operator.text: c.operator for c in self._candidates}
        return self._by_text.get(text) or self._space.parse(text)


def in_quarantine(reason: str) -> str:
    """Word the reason of the last failure of an operator that is put in quarantine."""
    return f"{reason}; it failed {MOST_FAILURES} times and is in quarantine"


def _choices(settings: StudySettings, space: Space) -> tuple[Candidates, Method]:
    candidates = Candidates(space, objectives_of(settings.to_json()))
    options = settings.method_options
    return candidates, make_method(settings.method, candidates, settings.seed, options)


def settings_of(record: StudyRecord, events: list[EventRecord]) -> StudySettings:
    """Return the settings of a study, with the limits that later runs set."""
    check_search(record)
    return StudySettings.from_json(current_settings(record, events))
