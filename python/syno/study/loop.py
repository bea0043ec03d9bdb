"""The loop: ask, evaluate, tell, until a stopper says why not to go on."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any, Protocol

from syno._errors import UserError
from syno.store import Outcome
from syno.study.checkpoints import Checkpoints
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
# Reasons after which a study goes on with new limits only.
_FINISHED = ("evaluations", "exhausted")


class Evaluator(Protocol):
    """Gives the answer to a proposal. A failure is an outcome; an exception ends the run."""

    def baseline(self) -> Outcome:
        """Trains and times the original network."""

    def evaluate(self, operator: Any) -> Outcome:
        """Verifies, trains and times the network with `operator` in it."""


class RungEvaluator(Protocol):
    """The same at a rung of a ladder, from 0 at the bottom."""

    def baseline(self, rung: int) -> Outcome:
        """Trains and times the original network."""

    def evaluate(self, operator: Any, rung: int) -> Outcome:
        """Verifies, trains and times the network with `operator` in it."""


def default_stopper(study: Study) -> Stopper:
    """The limits in the settings of the study, and the end of the space."""
    settings = study.settings
    stopper = SpaceExhausted() | Evaluations(settings.evaluations) | ErrorsInARow(MOST_ERRORS)
    return stopper if settings.seconds is None else stopper | Seconds(settings.seconds)


def run(
    study: Study,
    evaluator: Evaluator | RungEvaluator,
    *,
    stopper: Stopper | None = None,
    observer: Observer | None = None,
    checkpoints: Checkpoints | None = None,
) -> StopReason:
    """Evaluates proposals one after the other and gives the reason for stopping.

    evaluator: a RungEvaluator for a study with a ladder, which may keep `checkpoints`: those that
    are not needed any more are deleted after each answer.

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
                if checkpoints is not None:
                    checkpoints.keep(study.checkpoints_needed())
                observer.on_tell(proposal, outcome, study.tally())
        study.stop(reason)
        if checkpoints is not None and reason.name in _FINISHED:
            checkpoints.keep(study.checkpoints_needed(finished=True))
    except KeyboardInterrupt:
        study.stop(StopReason("interrupted", "interrupted from the keyboard"))
        raise
    finally:
        study.close()
    observer.on_stop(reason)
    return reason


def _evaluate(
    study: Study, evaluator: Evaluator | RungEvaluator, proposal: Proposal, observer: Observer
) -> Outcome:
    try:
        with Heartbeat(study.store, proposal.id, study.worker):
            if proposal.is_baseline:
                outcome = evaluator.baseline(*_rung(proposal))
            else:
                outcome = _evaluate_operator(study, evaluator, proposal, observer)
        study.tell(proposal.id, outcome)
    except BaseException:
        # The first error is the one to tell; a lease that stays is void once the study is closed.
        with contextlib.suppress(UserError):
            study.release(proposal.id)
        raise
    return outcome


def _rung(proposal: Proposal) -> tuple[int, ...]:
    """What the evaluator of a study with a ladder is told besides."""
    return () if proposal.rung is None else (proposal.rung,)


def _evaluate_operator(
    study: Study, evaluator: Evaluator | RungEvaluator, proposal: Proposal, observer: Observer
) -> Outcome:
    """Evaluates once more what failed as if something outside the operator had been the reason."""
    while True:
        outcome = evaluator.evaluate(proposal.operator, *_rung(proposal))
        kind = failure_kind(outcome)
        if kind is None:
            return outcome
        if study.failed(proposal.id, kind, outcome.reason):
            return replace(outcome, reason=in_quarantine(outcome.reason))
        observer.on_failure(proposal, outcome)
