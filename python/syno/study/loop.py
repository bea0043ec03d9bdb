"""The loop: ask, evaluate, tell, until a stopper says why not to go on."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Protocol

from syno._errors import UserError
from syno.store import Outcome
from syno.study.failures import failure_kind
from syno.study.heartbeat import Heartbeat
from syno.study.observer import Observer
from syno.study.stoppers import (
    ErrorsInARow,
    Evaluations,
    Seconds,
    SpaceExhausted,
    Stopper,
    StopReason,
)
from syno.study.study import Proposal, Study, in_quarantine

MOST_ERRORS = 10


class Evaluator(Protocol):
    """Gives the answer to a proposal. A failure is an outcome; an exception ends the run."""

    def baseline(self) -> Outcome:
        """Trains and times the original network."""

    def evaluate(self, operator: Any) -> Outcome:
        """Verifies, trains and times the network with `operator` in it."""


def default_stopper(study: Study) -> Stopper:
    """The limits in the settings of the study, and the end of the space."""
    settings = study.settings
    stopper = SpaceExhausted() | Evaluations(settings.evaluations) | ErrorsInARow(MOST_ERRORS)
    return stopper if settings.seconds is None else stopper | Seconds(settings.seconds)


def run(
    study: Study,
    evaluator: Evaluator,
    *,
    stopper: Stopper | None = None,
    observer: Observer | None = None,
) -> StopReason:
    """Evaluates proposals one after the other and gives the reason for stopping.

    When it is interrupted (Ctrl-C, a mistake of the user found on the way), the open proposal is
    given back and the exception goes on.
    """
    stopper = stopper or default_stopper(study)
    observer = observer or Observer()
    try:
        observer.on_start(study.record, study.settings, study.tally())
        while (reason := stopper.check(study.tally())) is None:
            for proposal in study.ask(1):
                observer.on_ask(proposal)
                outcome = _evaluate(study, evaluator, proposal, observer)
                observer.on_tell(proposal, outcome, study.tally())
        study.stop(reason)
    except KeyboardInterrupt:
        study.stop(StopReason("interrupted", "interrupted from the keyboard"))
        raise
    finally:
        study.close()
    observer.on_stop(reason)
    return reason


def _evaluate(
    study: Study, evaluator: Evaluator, proposal: Proposal, observer: Observer
) -> Outcome:
    try:
        with Heartbeat(study.store, proposal.id, study.worker):
            if proposal.is_baseline:
                outcome = evaluator.baseline()
            else:
                outcome = _evaluate_operator(study, evaluator, proposal, observer)
        study.tell(proposal.id, outcome)
    except BaseException:
        # The first error is the one to tell; a lease that stays is void once the study is closed.
        with contextlib.suppress(UserError):
            study.release(proposal.id)
        raise
    return outcome


def _evaluate_operator(
    study: Study, evaluator: Evaluator, proposal: Proposal, observer: Observer
) -> Outcome:
    """Evaluates once more what failed as if something outside the operator had been the reason."""
    while True:
        outcome = evaluator.evaluate(proposal.operator)
        kind = failure_kind(outcome)
        if kind is None:
            return outcome
        if study.failed(proposal.id, kind, outcome.reason):
            return replace(outcome, reason=in_quarantine(outcome.reason))
        observer.on_failure(proposal, outcome)
