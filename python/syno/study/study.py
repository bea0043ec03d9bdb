"""A study: search and evaluation communicate by `ask` and `tell` only.

                 propose(history)              evaluate
      Method  <------------------  Study  <---------------->  Evaluator, or a custom trainer
                                     |  ask(n) / tell(id, outcome)
                                     v
                                   Store      proposals, and the result of each

Before each proposal, the state of the study (`syno.store.StudyState`) reads what is new in the
store. It is what reading the whole study again would give, so the method cannot distinguish a study
that was killed and resumed from one that was not.
"""

from __future__ import annotations

import dataclasses
import time
from typing import cast

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
    Store,
    StudyRecord,
    StudyState,
    StudySummary,
    check_search,
    current_settings,
)
from syno.store.documents import EventData
from syno.store.objectives import objectives_of
from syno.store.overview import running_seconds
from syno.store.records import ERROR, OPERATOR, REJECTED
from syno.study.answers import Answers, Proposal
from syno.study.fidelity.standings import Standings
from syno.study.fronts import wanted_weights
from syno.study.live_history import LiveHistory
from syno.study.members import EnumeratedSpace, Members
from syno.study.methods import Method, make_method
from syno.study.results_since_progress import ResultsSinceProgress
from syno.study.settings import StudySettings
from syno.study.stoppers import StopReason, Tally
from syno.study.waiting_list import ENQUEUED, WaitingList


class Study(Answers):
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
        space: EnumeratedSpace,
        members: Members,
        method: Method,
        state: StudyState | None = None,
    ) -> None:
        super().__init__(store, record, settings, space.rules)
        self.exhausted = False
        # The token of the driver, where others evaluate what this object proposes: see `driver.py`.
        self.driver: int | None = None
        # Whether a stopper looks at the progress, which takes time to count.
        self.counts_progress = settings.patience is not None
        self._space = space
        self._members = members
        self._method = method
        self._by_text: dict[str, Operator] | None = None
        self.state = store.state(record) if state is None else state
        self._live = LiveHistory(self.state, self.objectives, self.ladder)
        self._queue = WaitingList(self.state)
        self._progress = ResultsSinceProgress(self.state, self.objectives)
        self._standings: Standings | None = None
        if self.ladder is not None:
            self._standings = Standings(self.state, self.ladder)
        self._began = time.monotonic()
        self._seconds_before = 0.0
        self._results_before = len(self.state.results)

    @classmethod
    def create(
        cls, store: Store, name: str, settings: StudySettings, space: EnumeratedSpace
    ) -> Study:
        """Make a new study. A `name` that ends in "-" is completed with a free number."""
        chosen = _choices(settings, space)  # a mistake there must not leave a study behind
        record = store.create_study(
            name,
            specification=space.specification,
            settings=settings.to_json(),
            seed=settings.seed,
        )
        study = cls(store, record, settings, space, *chosen)
        study._check_space([])
        store.append_event(record, "started", {})
        return study

    @classmethod
    def load(
        cls,
        store: Store,
        name: str | int | None,
        space: EnumeratedSpace,
        **limits: object,
    ) -> Study:
        """Resume a study. The settings that are given, and not None, replace its own."""
        record = store.study(name)
        state = store.state(record)
        events = state.events
        settings = settings_of(record, events).changed(**limits)
        study = cls(store, record, settings, space, *_choices(settings, space), state)
        study._check_space(events)
        study._seconds_before = running_seconds(events)
        given = {name: value for name, value in limits.items() if value is not None}
        store.append_event(record, "resumed", cast(EventData, given))
        return study

    def _check_space(self, events: list[EventRecord]) -> None:
        """Store a digest of the space, or compare the space with the stored digest."""
        before = next((e.data for e in events if e.kind == "space"), None)
        if before is None:
            self.store.append_event(
                self.record,
                "space",
                {
                    "operators": len(self._space.operators),
                    "keys": len(self._members),
                    "digest": self._members.digest,
                    "rules": self._space.rules,
                    "rejections": self._space.rejections(),
                },
            )
        elif before["digest"] != self._members.digest:
            raise UserError(
                f"study '{self.record.name}' cannot be continued: its space had {before['keys']} "
                f"operators (rules {before['rules']}), now it has {self.keys} different ones "
                f"(rules {self._space.rules})\n"
                "  what to do: resume it with the version of Syno that started it, or start a "
                "new study; "
                "its results stay in the store"
            )

    def follow(self) -> StudyState:
        """Read what is new in the store, and return the state of the study."""
        self.store.follow(self.state)
        return self.state

    @property
    def keys(self) -> int:
        """The number of distinct semantic keys in the space."""
        return len(self._members)

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

    def propose(self, evaluations: int | None = None) -> Proposal | None:
        """Store the next proposal for workers: `ask` without the interrupted ones, which they take.

        Args:
            evaluations: as in `ask`.

        Returns:
            The proposal, which nobody evaluates yet; None if the limit is reached, and
            (`exhausted`) if there is no operator left.

        Raises:
            DriverLostError: if another process drives the study now.
        """
        while True:
            try:
                proposal = self._promoted() or self._proposed(evaluations)
            except (AskTakenError, AlreadyCompletedError):
                continue  # another process was faster
            except LimitReachedError:
                return None
            self.exhausted = proposal is None
            return proposal

    def next_operator(self, evaluations: int | None = None) -> Operator | None:
        """Return the new operator that `ask` will probably propose next; None if nothing says so.

        It is not proposed by this. Results of open proposals may change it.
        """
        state = self.follow()
        count = len(state.waiting) + state.evaluated
        if state.last is None or (evaluations is not None and count >= evaluations):
            return None
        found = self._enqueued()
        if found is None and self._method.foresees:
            found = self._method.propose(self._live.history(state.last + 1))
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

    def stop(self, reason: StopReason) -> None:
        """Log why this run ended."""
        data = {"reason": reason.name, "text": reason.text}
        self.store.append_event(self.record, "stopped", data)

    def tally(self, *, follow: bool = True) -> Tally:
        """Count the evaluations of the study, over all its runs.

        Args:
            follow: whether to read what is new first.
        """
        state = self.follow() if follow else self.state
        seconds = self._seconds_before + time.monotonic() - self._began
        return Tally(
            state.evaluated,
            state.completed - state.evaluated,
            seconds,
            self.exhausted,
            self._errors(),
            due=self._due(),
            stale=self._progress.count() if self.counts_progress else 0,
        )

    def _errors(self) -> int:
        """Count the errors since the last other result of an operator.

        Those of earlier runs do not count, because their cause may be gone.
        """
        count = 0
        results = self.state.results
        for place in reversed(range(self._results_before, len(results))):
            if results[place].kind != OPERATOR:
                continue
            if results[place].status != ERROR:
                break
            count += 1
        return count

    def _due(self) -> int:
        """Count the evaluations that are due beside new operators: promotions, interrupted
        evaluations that no process works on, and a released baseline."""
        higher = self.state.higher
        interrupted = higher & set(self.store.unleased(self.record)) if higher else set()
        return len(interrupted) + (len(self._standings.due()) if self._standings else 0)

    def _promoted(self) -> Proposal | None:
        """Promote the next operator, or the baseline before it.

        Raises:
            AskTakenError: if another process promoted it, or stored a result that may change which
                operator is next.
        """
        if self._standings is None:
            return None
        self.follow()
        due = self._standings.due()
        if not due:
            return None
        record, rung = self.state.proposal(due[0].ask), due[0].rung
        counted, attempts = self.counts_attempts, int(self.counts_attempts and not self.driver)
        token = self.store.promote(
            record.id,
            rung,
            self._holder,
            counted=counted,
            driver=self.driver,
            state=self.state,
        )
        record = dataclasses.replace(record, rung_index=rung, attempts=attempts, token=token)
        self._hold(record)
        return self._proposal(record)

    @property
    def _holder(self) -> str | None:
        """The worker that proposals are leased to as they are stored."""
        return self.worker if self.driver is None else None

    def _hold(self, record: ProposalRecord) -> None:
        if self.driver is None:
            self.hold(record)

    def _reopened(self) -> Proposal | None:
        counted = self.counts_attempts
        while record := self.store.lease_open(self.record, self.worker, counted=counted):
            self.hold(record)
            if not self.settle(record):
                return self._proposal(record)
        return None

    def _proposed(self, evaluations: int | None) -> Proposal | None:
        while True:
            if evaluations is None:
                self.follow()
            else:  # choosing may take long
                self.store.check_limit(self.record, evaluations, self._holder, self.state)
            state, seen = self.state, self.state.seen
            number = int(not self.settings.baseline) if state.last is None else state.last + 1
            operator = None
            if number > 0:
                operator = self._enqueued()
                operator = operator or self._method.propose(self._live.history(number))
                if operator is None:
                    return None
            record = self.store.ask(
                self.record,
                number,
                None if operator is None else (operator.text, operator.key),
                self._holder,
                limit=evaluations,
                counted=self.counts_attempts,
                seen=seen,
                driver=self.driver,
                state=state,
            )
            self._hold(record)
            if evaluations is None:  # otherwise, `ask` has read what is new
                self.follow()
            found = None if record.key is None else state.in_quarantine(record.key)
            if found is None:
                return self.made(record, operator)
            # A method may propose an operator again; the result lets it propose another one.
            reason = f"it is in quarantine: {found.reason}"
            self.tell(record.id, Outcome(REJECTED, reason=reason))

    def quarantine_reason(self, key: str) -> str | None:
        """Return why an operator is in quarantine; None if it is not."""
        found = self.follow().in_quarantine(key)
        return None if found is None else found.reason

    def checkpoints_needed(self, *, finished: bool = False) -> set[tuple[str, int]]:
        """See `Answers.checkpoints_needed`."""
        self.follow()
        return self._checkpoints(self.state.proposals, self.state.results, finished=finished)

    def weights_needed(self) -> list[tuple[str | None, int]]:
        """See `Answers.weights_needed`."""
        state = self.follow()
        running = [(state.proposal(ask).key, self.settings.seed) for ask in sorted(state.opened)]
        summary = StudySummary(
            study=self.record,
            baseline=None,
            evaluations=tuple(e for e in state.evaluations if e.kind == OPERATOR),
            rejections={},
            events=(),
            open_asks=(),
            stop_reason="",
            baselines=tuple(state.baselines),
        )
        return running + wanted_weights(summary)

    def _enqueued(self) -> Operator | None:
        """Return the first enqueued operator that is not proposed yet."""
        text = self._queue.first()
        return None if text is None else self.operator(text)

    def proposal(self, record: ProposalRecord, rung: int) -> Proposal:
        """Return a proposal of the store as it was at a rung."""
        return self._proposal(dataclasses.replace(record, rung_index=rung))

    def _proposal(self, record: ProposalRecord) -> Proposal:
        return self.made(record, None if record.text is None else self.operator(record.text))

    def operator(self, text: str) -> Operator:
        """Return the operator with this text under the specification of the space."""
        if self._by_text is None:
            self._by_text = {c.operator.text: c.operator for c in self._members}
        return self._by_text.get(text) or self._space.parse(text)


def _choices(settings: StudySettings, space: EnumeratedSpace) -> tuple[Members, Method]:
    members = Members(space, objectives_of(settings.to_json()))
    options = settings.method_options
    return members, make_method(settings.method, members, settings.seed, options)


def settings_of(record: StudyRecord, events: list[EventRecord]) -> StudySettings:
    """Return the settings of a study, with the limits that later runs set."""
    check_search(record)
    return StudySettings.from_json(current_settings(record, events))
