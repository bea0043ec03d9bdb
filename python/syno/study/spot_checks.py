"""Spot checks of a study: what its driver does for them, and how a worker evaluates one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import cast

from syno.store import AlreadyCompletedError, Outcome, SpotCheck
from syno.store.leasing import DISPUTED
from syno.store.records import DISPUTE, ERROR, MOST_FAILURES, TIMEOUT
from syno.store.spot_checks import ANSWERED, WAITING
from syno.study.answers import Proposal
from syno.study.evaluate.failures import failure_kind
from syno.study.evaluate.protocol import Evaluator, RungEvaluator
from syno.study.study import Study

# So long a check or a dispute waits for a worker that may take it, before it is left.
ALONE_S = 20.0


class Checking:
    """The spot checks of a study, as its driver sees them.

    Args:
        study: the study.
        able: gives the names of the workers that can evaluate its proposals.
        note: is called with what the user should know.
    """

    def __init__(
        self, study: Study, able: Callable[[], Sequence[str]], note: Callable[[str], None]
    ) -> None:
        self._study, self._able, self._note = study, able, note
        self._checks = study.store.spot_checks(study.record)
        self._chosen = 0  # events that checks were chosen from
        self._seen = -1
        self._alone: dict[int, float] = {}  # since when nobody could take a check

    @property
    def _share(self) -> float:
        return self._study.settings.spot_checks

    def step(self, seen: int) -> None:
        """Choose and compare answers, after the log has got new events; `seen` is their number."""
        if not self._share:
            return
        if seen != self._seen:
            self._seen = seen
            self._chosen = self._checks.choose(self._share, self._chosen)
            for text in self._checks.decide(self._study.settings.spot_tolerance):
                self._note(text)
        for check, is_alone in self._pending():
            if is_alone:
                self._leave(check)

    def holds(self, *, baseline: bool = False) -> bool:
        """Return whether the study cannot end yet.

        Args:
            baseline: only look at the check of the baseline.
        """
        if not self._share:
            return False
        self._chosen = self._checks.choose(self._share, self._chosen)
        return any(
            check.state != WAITING or not is_alone
            for check, is_alone in self._pending()
            if not baseline or check.proposal.ask == 0
        )

    def _pending(self) -> list[tuple[SpotCheck, bool]]:
        """The open checks, each with whether for some time no worker was there that may take it."""
        pending = self._checks.pending()
        there = set(self._able()) if pending else set()
        found = []
        for check in pending:
            if check.state == ANSWERED or there - set(check.workers):
                self._alone.pop(check.sequence, None)
                found.append((check, False))
            else:
                since = self._alone.setdefault(check.sequence, time.monotonic())
                found.append((check, time.monotonic() - since >= ALONE_S))
        return found

    def _leave(self, check: SpotCheck) -> None:
        """Go on without a worker that could take a check or settle a dispute."""
        ask = check.proposal.ask
        if check.state != DISPUTED:
            self._note(f"the spot check of trial {ask} waits for another worker: `syno worker`")
        elif check.proposal.key is None:
            self._note(
                "two workers found different results of the baseline network: a third one has to "
                "evaluate it (`syno worker`), before the search goes on"
            )
        else:
            self._quarantine(check)

    def _quarantine(self, check: SpotCheck) -> None:
        """Store that two workers disagree about an operator, which no third one evaluates."""
        answers, identity = self._checks.answers(check), check.proposal.id
        self._checks.leave(check)
        for text in answers:
            self._study.store.add_failure(identity, DISPUTE, text)
        reason = f"{DISPUTE}: {'; '.join(answers)}; no third worker was there"
        with contextlib.suppress(AlreadyCompletedError):  # a third worker came at this moment
            self._study.tell(identity, Outcome(ERROR, reason=reason))
        self._note(f"trial {check.proposal.ask} is in quarantine: {reason}")


def evaluated_again(
    evaluator: Evaluator | RungEvaluator, proposal: Proposal
) -> tuple[Outcome, bool]:
    """Evaluate a proposal for a spot check, and once more after a failure of the machine.

    A study with a ladder has no spot checks.

    Returns:
        The outcome, and whether it says something about the answer that is checked.
    """
    single, operator = cast(Evaluator, evaluator), proposal.operator
    for _ in range(MOST_FAILURES):
        outcome = single.baseline() if operator is None else single.evaluate(operator)
        if failure_kind(outcome) is None:
            return outcome, outcome.status != TIMEOUT
    return outcome, False
