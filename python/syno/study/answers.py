"""Answers to the proposals of a study: what evaluates proposals needs of it.

A search that evaluates what it proposes itself (`Study`) and a worker that evaluates what a driver
proposed share this part.
"""

from __future__ import annotations

from dataclasses import dataclass

from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.options import MAX_ATTEMPTS
from syno.store import (
    Environment,
    LeaseLostError,
    Outcome,
    ProposalRecord,
    RungResult,
    Store,
    StudyRecord,
    Worker,
)
from syno.store.environment import capture_environment
from syno.store.leasing import PREEMPTED, RELEASED
from syno.store.objectives import objectives_of
from syno.store.records import BASELINE, ERROR, GIVEN_UP, MOST_FAILURES, OK, OPERATOR, plain
from syno.study.fidelity.ladder import Ladder
from syno.study.fidelity.promotions import Promotions
from syno.study.fronts import wanted_weights
from syno.study.ratings import as_result
from syno.study.settings import StudySettings


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


@dataclass(frozen=True)
class Held:
    """A lease of this process: its token, and whether it counts as an attempt."""

    token: int | None
    counted: bool


class Answers:
    """The proposals of a study that one process has leased. One thread may use it at a time."""

    def __init__(
        self,
        store: Store,
        record: StudyRecord,
        settings: StudySettings,
        rules: str,
        worker: Worker | None = None,
    ) -> None:
        """Args:
        store, record, settings: the study.
        rules: the version of the rule set.
        worker: holds the leases; its owner closes it. Default: one of this object.
        """
        self.store = store
        self.record = record
        self.settings = settings
        self.rules = rules
        self.ladder = None if settings.ladder is None else Ladder.from_json(settings.ladder)
        self.objectives = objectives_of(settings.to_json())
        # Whether the end of this process during an evaluation counts as an attempt: where
        # evaluations have processes of their own, it says nothing about the operator.
        self.counts_attempts = True
        # After so many workers that were lost over an operator, it is given up; None: never.
        self.most_losses: int | None = None
        self._held: dict[int, Held] = {}
        self._worker = worker or Worker()
        self._environment = capture_environment(threads=settings.timing.threads, rules=rules)

    @property
    def worker(self) -> str:
        """The name with which this object leases proposals."""
        return self._worker.name

    @property
    def environment(self) -> Environment:
        """The machine and software of the results of this object."""
        return self._environment

    @property
    def max_attempts(self) -> int:
        """The number of attempts at an operator that may end with the process of the search."""
        return self.settings.isolation.max_attempts or MAX_ATTEMPTS

    def made(self, record: ProposalRecord, operator: Operator | None) -> Proposal:
        """Return a proposal of the store with its operator."""
        rung = None if self.settings.ladder is None else record.rung_index
        return Proposal(record.id, record.ask, record.kind, operator, record.attempts, rung)

    def quarantine_reason(self, key: str) -> str | None:
        """Return why an operator failed too often in the study; None if it did not."""
        return self.store.quarantine.reason(self.record, key)

    def settle(self, record: ProposalRecord) -> bool:
        """Store the result of a leased proposal that is not to be evaluated; return whether it was.

        It is in quarantine, because a run was killed before it stored that result, or its
        evaluation ended the process too often. The baseline is never given up.
        """
        found = None if record.key is None else self.quarantine_reason(record.key)
        if found is not None:
            reason = in_quarantine(found)
        elif record.kind == BASELINE:
            return False
        elif self.counts_attempts and record.attempts > self.max_attempts:
            reason = GIVEN_UP.format(self.max_attempts)
        elif (
            self.most_losses is not None
            and (losses := self.store.losses(record.id)) >= self.most_losses
        ):
            reason = GIVEN_UP.format(losses)
        else:
            return False
        self.tell(record.id, Outcome(ERROR, reason=reason))
        return True

    def hold(self, record: ProposalRecord) -> None:
        """Remember a lease that the store gave to `worker`."""
        self._held[record.id] = Held(record.token, self.counts_attempts)

    def tell(self, proposal: int, outcome: Outcome) -> None:
        """Store the result of a proposal.

        The same result again changes nothing, if its lease is that of this process.

        Raises:
            UserError: for an id that `ask` did not return.
            AlreadyCompletedError: if the proposal has a result.
            LeaseLostError: if another process took the proposal over.
        """
        held = self._held.get(proposal)
        if held is None:
            self.store.tell(proposal, outcome, self._environment)
        else:
            self.store.tell(proposal, outcome, self._environment, self.worker, held.token)
        self._held.pop(proposal, None)

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
        if proposal in self._held and not self.store.renew(proposal, self.worker):
            raise LeaseLostError(f"proposal {proposal} was taken over by another process")
        return self.store.quarantine.add(proposal, kind, reason) >= MOST_FAILURES

    def release(self, proposal: int, *, preempted: bool = False) -> None:
        """Give a proposal back without a result. The next `ask` of any process returns it."""
        held = self._held.get(proposal, Held(None, True))
        ending = PREEMPTED if preempted else RELEASED
        self.store.release(proposal, self.worker, counted=held.counted, ending=ending)
        self._held.pop(proposal, None)

    def release_all(self) -> None:
        """Give back what is left, such as what could not be given back before."""
        for proposal in list(self._held):
            self.release(proposal)

    def drop(self, proposal: Proposal, error: UserError, outcome: Outcome | None = None) -> None:
        """Log that a result does not count, because another process completed or took the proposal.

        Args:
            proposal: the proposal.
            error: the reason.
            outcome: the result, which the log keeps.
        """
        held = self._held.pop(proposal.id, None)
        data = {"proposal": proposal.id, "ask": proposal.ask, "reason": str(error)}
        if outcome is not None:
            data |= {"token": None if held is None else held.token, "outcome": plain(outcome)}
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

    def checkpoints_needed(self, *, finished: bool = False) -> set[tuple[str, int]]:
        """List the checkpoints that later rungs may continue from: see `Promotions`.

        Args:
            finished: only list those of evaluations that run in other processes.
        """
        records, results = self.store.proposals(self.record), self.store.rung_results(self.record)
        return self._checkpoints(records, results, finished=finished)

    def _checkpoints(
        self, records: list[ProposalRecord], results: list[RungResult], *, finished: bool
    ) -> set[tuple[str, int]]:
        if self.ladder is None:
            return set()
        promotions = Promotions(self.ladder, records, results)
        if finished:
            return promotions.pending_checkpoints()
        return promotions.needed_checkpoints(self.settings.evaluations)

    def weights_needed(self) -> list[tuple[str | None, int]]:
        """List the trials whose weights are kept, as pairs (key, seed), the most important first.

        They are those that are being evaluated, whose files may be there before their results, and
        those that the summary wants.
        """
        opened = [p for p in self.store.proposals(self.record) if p.is_open]
        running = [(p.key, self.settings.seed) for p in opened]
        return running + wanted_weights(self.store.summary(self.record))

    def close(self) -> None:
        """Release the leases of this object. The store stays open."""
        self._worker.close()


def in_quarantine(reason: str) -> str:
    """Word the reason of the last failure of an operator that is put in quarantine."""
    return f"{reason}; it failed {MOST_FAILURES} times and is in quarantine"
