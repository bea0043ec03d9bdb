"""A study: ask and tell are the only door between search and evaluation.

                 propose(history)              evaluate
      Method  <------------------  Study  <---------------->  Evaluator, or anybody's own trainer
                                     |  ask(n) / tell(id, outcome)
                                     v
                                   Store      proposal stored when asked, answer when told

The history is read from the store before each proposal, so a study that was killed and one that
was not are the same to the method.
"""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

from syno._util.errors import UserError
from syno._util.json_types import Json
from syno.operators.operator import Operator
from syno.store import (
    AlreadyAnsweredError,
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
    current_settings,
)
from syno.store.log import EVALUATED
from syno.store.objective import objective_of
from syno.store.records import BASELINE, ERROR, GIVEN_UP, MOST_FAILURES, OPERATOR, REJECTED
from syno.study.candidates import Candidates, Space
from syno.study.fidelity.climb import Climb
from syno.study.fidelity.ladder import Ladder
from syno.study.methods import History, Method, make_method
from syno.study.methods.history import make_history
from syno.study.settings import StudySettings
from syno.study.stoppers import StopReason, Tally

# An operator that ended the process of its search this often is given up, see `max_attempts`.
MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class Proposal:
    """What to evaluate next: `operator` is None for the original network (kind `baseline`).

    rung: of the study's ladder, from 0 at the bottom; None without a ladder.
    """

    id: int
    ask: int
    kind: str
    operator: Operator | None
    attempts: int = 1
    rung: int | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether the original network is to be evaluated."""
        return self.kind == BASELINE


class Study:
    """A study in a store, with the space it draws from. Not for several threads at once.

    Study.create(store, name, settings, space)      makes a new one
    Study.load(store, name, space)                  continues one

    UserError when the space is not the one the study began with: it would go on differently.
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
        self.exhausted = False
        # Whether the end of this process during an evaluation counts as an attempt: where
        # evaluations have processes of their own, it says nothing about the operator.
        self.counts_attempts = True
        self._leased: dict[int, bool] = {}  # proposals that are open here, whether they count
        self._space = space
        self._candidates = candidates
        self._method = method
        self._by_text: dict[str, Operator] | None = None
        self._worker = Worker()
        self._environment = capture_environment(
            threads=int(settings.latency.get("threads", 1)), rules=space.rules
        )
        self._began = time.monotonic()
        self._seconds_before = 0.0
        self._results_before = len(store.rung_results(record))

    @classmethod
    def create(cls, store: Store, name: str, settings: StudySettings, space: Space) -> Study:
        """Makes a new study; a `name` that ends in "-" is completed with a free number."""
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
        training: Mapping[str, Json] | None = None,
    ) -> Study:
        """Continues a study; `evaluations`, `seconds` and `training` replace its settings from now
        on."""
        record = store.study(name)
        events = store.events(record)
        limits = {"evaluations": evaluations, "seconds": seconds, "training": training}
        settings = settings_of(record, events).changed(**limits)
        study = cls(store, record, settings, space, *_choices(settings, space))
        study._check_space(tuple(events))
        study._seconds_before = running_seconds(events)
        given = {name: value for name, value in limits.items() if value is not None}
        store.append_event(record, "resumed", given)
        return study

    def _check_space(self, events: tuple[EventRecord, ...]) -> None:
        """Writes down what the space is, or compares it with what was written down."""
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
        """Distinct semantic keys in the space."""
        return len(self._candidates)

    @property
    def worker(self) -> str:
        """The name under which this study object leases proposals."""
        return self._worker.name

    @property
    def max_attempts(self) -> int:
        """How many attempts at an operator may end with the process of the search."""
        return int(self.settings.training.get("max_attempts") or MAX_ATTEMPTS)

    def ask(self, count: int = 1, *, evaluations: int | None = None) -> list[Proposal]:
        """Up to `count` proposals, each stored; fewer when the space is exhausted, and when as many
        operators as `evaluations` were evaluated or are evaluated by other processes.

        1. Proposals that were asked and whose evaluation was interrupted, under their old ids.
        2. With a ladder, what goes on to a higher rung, by the rule in `asha.py`.
        3. The baseline, in a study that has none yet.
        4. New operators by the search method.
        """
        found: list[Proposal] = []
        while len(found) < count:
            try:
                proposal = self._reopened() or self._promoted() or self._proposed(evaluations)
            except (AskTakenError, AlreadyAnsweredError, LeaseLostError):
                continue  # another process was faster: look again
            except LimitReachedError:
                break
            if proposal is None:
                self.exhausted = True
                break
            found.append(proposal)
        return found

    def tell(self, proposal: int, outcome: Outcome) -> None:
        """Stores the answer to a proposal.

        UserError for an id that `ask` did not give; AlreadyAnsweredError for a second answer;
        LeaseLostError when another process took over what was asked here.
        """
        worker = self.worker if proposal in self._leased else None
        self.store.tell(proposal, outcome, self._environment, worker)
        self._leased.pop(proposal, None)

    def failed(self, proposal: int, kind: str, reason: str) -> bool:
        """Counts a failure that may have come from outside the operator; True when it is in
        quarantine now. While it is not, the proposal stays open and is to be evaluated once more.

        kind: as `failures.failure_kind` gives it. LeaseLostError as for `tell`.
        """
        if proposal in self._leased and not self.store.renew(proposal, self.worker):
            raise LeaseLostError(f"proposal {proposal} was taken over by another process")
        return self.store.add_failure(proposal, kind, reason) >= MOST_FAILURES

    def release(self, proposal: int) -> None:
        """Gives a proposal back unanswered: the next `ask`, here or elsewhere, hands it out."""
        counted = self._leased.pop(proposal, True)
        self.store.release(proposal, self.worker, counted=counted)

    def drop(self, proposal: Proposal, error: UserError) -> None:
        """Writes down that an answer is not stored, because of `error`: another process has
        answered the proposal, or evaluates it."""
        self._leased.pop(proposal.id, None)
        data = {"proposal": proposal.id, "ask": proposal.ask, "reason": str(error)}
        self.store.append_event(self.record, "dropped", data)

    def stop(self, reason: StopReason) -> None:
        """Writes down why this run ended."""
        data = {"reason": reason.name, "text": reason.text}
        self.store.append_event(self.record, "stopped", data)

    def close(self) -> None:
        """Voids the leases of this object; the store stays open."""
        self._worker.close()

    def tally(self) -> Tally:
        """How far the study is, over all its runs."""
        records = self.store.proposals(self.record)
        told = [p for p in records if p.kind == OPERATOR and p.status is not None]
        evaluated = sum(p.is_evaluated for p in told)
        seconds = self._seconds_before + time.monotonic() - self._began
        # A resumed study gets a new chance: whatever was wrong may be right now.
        results = self.store.rung_results(self.record)
        here = [r for r in results[self._results_before :] if r.kind == OPERATOR]
        errors = sum(1 for _ in takewhile(lambda r: r.status == ERROR, reversed(here)))
        return Tally(
            evaluated,
            len(told) - evaluated,
            seconds,
            self.exhausted,
            errors,
            due=self._due(records, results),
        )

    def checkpoints_needed(self, *, finished: bool = False) -> set[tuple[str, int]]:
        """The checkpoints that a later rung may go on from, see `Climb`; of a finished study those
        of evaluations that run elsewhere."""
        climb = self._climb()
        if climb is None:
            return set()
        return climb.open() if finished else climb.waiting(self.settings.evaluations)

    def _due(self, records: list[ProposalRecord], results: list[RungResult]) -> int:
        """Promotions to come, interrupted ones that nobody works on, and a baseline that was
        released: what an operator does not count for."""
        opened = {p.ask for p in records if p.is_open and (p.rung_index > 0 or p.kind == BASELINE)}
        interrupted = opened & set(self.store.unheld(self.record)) if opened else set()
        if self.ladder is None:
            return len(interrupted)
        return len(interrupted) + len(Climb(self.ladder, records, results).due())

    def _climb(self) -> Climb | None:
        if self.ladder is None:
            return None
        records, results = self.store.proposals(self.record), self.store.rung_results(self.record)
        return Climb(self.ladder, records, results)

    def _promoted(self) -> Proposal | None:
        """The next operator that goes up, or the baseline before it. AskTakenError when another
        process promoted it, or told a result by which another may be due."""
        if self.ladder is None:
            return None
        results = self.store.rung_results(self.record)
        climb = Climb(self.ladder, self.store.proposals(self.record), results)
        due = climb.due()
        if not due:
            return None
        record, rung = climb.proposal(due[0]), due[0].rung
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
            if found is not None:  # it was about to be told when the run was killed
                self.tell(record.id, Outcome(ERROR, reason=in_quarantine(found.reason)))
            elif not self._is_given_up(record):
                return self._proposal(record)
            else:
                reason = GIVEN_UP.format(self.max_attempts)
                self.tell(record.id, Outcome(ERROR, reason=reason))
        return None

    def _is_given_up(self, record: ProposalRecord) -> bool:
        """Whether its process ended too often. The baseline is known to do no harm."""
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
                operator = self._method.propose(self._history(number, records))
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
            # A method may come back to an operator; the answer lets it go on to another.
            reason = f"it is in quarantine: {found.reason}"
            self.tell(record.id, Outcome(REJECTED, reason=reason))

    def _proposal(self, record: ProposalRecord) -> Proposal:
        operator = None if record.text is None else self._operator(record.text)
        rung = None if self.ladder is None else record.rung_index
        return Proposal(record.id, record.ask, record.kind, operator, record.attempts, rung)

    def _history(self, number: int, records: list[ProposalRecord]) -> History:
        results = self.store.rung_results(self.record)
        if self.ladder is not None:
            values = Climb(self.ladder, records, results).values()
        else:
            values = {r.ask: r.accuracy or 0.0 for r in reversed(results) if r.is_evaluated}
        evaluations = self.store.evaluations(self.record)
        objective = objective_of(self.record.settings)
        return make_history(number, records, evaluations, values, objective)

    def _operator(self, text: str) -> Operator:
        if self._by_text is None:
            self._by_text = {c.operator.text: c.operator for c in self._candidates}
        return self._by_text.get(text) or self._space.parse(text)


def in_quarantine(reason: str) -> str:
    """The reason of the last failure of an operator that goes into quarantine."""
    return f"{reason}; it failed {MOST_FAILURES} times and is in quarantine"


def _choices(settings: StudySettings, space: Space) -> tuple[Candidates, Method]:
    candidates = Candidates(space)
    options = settings.method_options
    return candidates, make_method(settings.method, candidates, settings.seed, options)


def settings_of(record: StudyRecord, events: list[EventRecord]) -> StudySettings:
    """The settings of a study with the limits that later runs gave it."""
    return StudySettings.from_json(dict(current_settings(record, events)))


def running_seconds(events: list[EventRecord]) -> float:
    """Time from the beginning of each run to the last thing it wrote down, all runs together."""
    total = 0.0
    first = last = None
    for event in events:
        if event.kind == EVALUATED:  # `syno report --final` adds it after the run, perhaps days
            continue
        moment = datetime.datetime.fromisoformat(event.created)
        if event.kind in ("started", "resumed"):
            total += (last - first).total_seconds() if first and last else 0.0
            first = moment
        last = moment
    return total + ((last - first).total_seconds() if first and last else 0.0)
