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
    Progress,
    ProposalRecord,
    RungResult,
    Store,
    StudyRecord,
    check_search,
    current_settings,
)
from syno.store.documents import TrainingSettings
from syno.store.objectives import objectives_of
from syno.store.overview import running_seconds, since_progress
from syno.store.records import BASELINE, ERROR, OPERATOR, REJECTED
from syno.study.answers import Answers, Proposal
from syno.study.candidates import Candidates, Space
from syno.study.fidelity.promotions import Promotions
from syno.study.methods import History, Method, make_method
from syno.study.methods.history import make_history, told_after
from syno.study.ratings import rated
from syno.study.settings import Limits, StudySettings
from syno.study.stoppers import StopReason, Tally

# The kind of the event of an operator that the user proposes.
ENQUEUED = "enqueued"


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
        space: Space,
        candidates: Candidates,
        method: Method,
    ) -> None:
        super().__init__(store, record, settings, space.rules)
        self.exhausted = False
        # The token of the driver, where others evaluate what this object proposes: see `driver.py`.
        self.driver: int | None = None
        # Whether a stopper looks at the progress, which takes time to count.
        self.counts_progress = settings.patience is not None
        self._space = space
        self._candidates = candidates
        self._method = method
        self._by_text: dict[str, Operator] | None = None
        self._log: tuple[EventRecord, ...] = ()  # as far as it was read
        # The number of results since progress, with the results that it was counted in.
        self._stale: tuple[list[RungResult], int] = ([], 0)
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
        progress = self._progress()
        records = progress.proposals
        count = sum(p.kind == OPERATOR and (p.is_open or p.is_evaluated) for p in records)
        if not records or (evaluations is not None and count >= evaluations):
            return None
        found = self._enqueued(progress)
        if found is None and self._method.foresees:
            found = self._method.propose(self._history(records[-1].ask + 1, progress))
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

    def _due(self, records: list[ProposalRecord], results: list[RungResult]) -> int:
        """Count the evaluations that are due beside new operators: promotions, interrupted
        evaluations that no process works on, and a released baseline."""
        opened = {p.ask for p in records if p.is_open and (p.rung_index > 0 or p.kind == BASELINE)}
        interrupted = opened & set(self.store.unleased(self.record)) if opened else set()
        if self.ladder is None:
            return len(interrupted)
        return len(interrupted) + len(Promotions(self.ladder, records, results).due())

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
        counted, attempts = self.counts_attempts, int(self.counts_attempts and not self.driver)
        token = self.store.promote(
            record.id,
            rung,
            self._holder,
            results=len(results),
            counted=counted,
            driver=self.driver,
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
            if evaluations is not None:  # choosing may take long
                self.store.check_limit(self.record, evaluations, self._holder)
            progress = self._progress()
            records = progress.proposals
            number = records[-1].ask + 1 if records else int(not self.settings.baseline)
            operator = None
            if number > 0:
                operator = self._enqueued(progress)
                operator = operator or self._method.propose(self._history(number, progress))
                if operator is None:
                    return None
            record = self.store.ask(
                self.record,
                number,
                None if operator is None else (operator.text, operator.key),
                self._holder,
                limit=evaluations,
                counted=self.counts_attempts,
                seen=progress.seen,
                driver=self.driver,
            )
            self._hold(record)
            found = self.quarantined().get(record.key or "")
            if found is None:
                return self.made(record, operator)
            # A method may propose an operator again; the result lets it propose another one.
            reason = f"it is in quarantine: {found.reason}"
            self.tell(record.id, Outcome(REJECTED, reason=reason))

    def _enqueued(self, progress: Progress) -> Operator | None:
        """Return the first enqueued operator that is not proposed yet."""
        proposed = {record.key for record in progress.proposals}
        for event in progress.events:
            if event.kind == ENQUEUED and event.data["key"] not in proposed:
                return self._operator(event.data["text"])
        return None

    def _progress(self) -> Progress:
        """Return the state of the study; only new events of its log are read."""
        progress = self.store.progress(self.record, self._log)
        self._log = progress.events
        return progress

    def proposal(self, record: ProposalRecord, rung: int) -> Proposal:
        """Return a proposal of the store as it was at a rung."""
        return self._proposal(dataclasses.replace(record, rung_index=rung))

    def _proposal(self, record: ProposalRecord) -> Proposal:
        return self.made(record, None if record.text is None else self._operator(record.text))

    def _history(self, number: int, progress: Progress) -> History:
        records, results = list(progress.proposals), list(progress.results)
        evaluations = list(progress.evaluations)
        if not (self.objectives.are_default and self.objectives.objective.is_share):
            rungs = 1 if self.ladder is None else len(self.ladder.rungs)
            values = rated(self.objectives, evaluations, rungs)
        elif self.ladder is not None:
            values = Promotions(self.ladder, records, results).values()
        else:
            values = {r.ask: r.accuracy or 0.0 for r in reversed(results) if r.is_evaluated}
        told = told_after(progress.events, records)
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


def _choices(settings: StudySettings, space: Space) -> tuple[Candidates, Method]:
    candidates = Candidates(space, objectives_of(settings.to_json()))
    options = settings.method_options
    return candidates, make_method(settings.method, candidates, settings.seed, options)


def settings_of(record: StudyRecord, events: list[EventRecord]) -> StudySettings:
    """Return the settings of a study, with the limits that later runs set."""
    check_search(record)
    return StudySettings.from_json(current_settings(record, events))
