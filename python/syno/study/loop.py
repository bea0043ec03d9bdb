"""The loop: ask, evaluate, tell, until a stopper says why not to go on."""

from __future__ import annotations

import contextlib
import functools
import time
from dataclasses import replace

from syno._util.errors import UserError
from syno.store import AlreadyAnsweredError, LeaseLostError, Outcome
from syno.store.records import MOST_FAILURES
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.failures import failure_kind
from syno.study.evaluate.heartbeat import Heartbeat
from syno.study.evaluate.protocol import Evaluator, RungEvaluator
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
# How often a search looks whether what another process evaluates has come to an end.
_LOOK_S = 1.0
# Reasons after which a study goes on with new limits only.
_FINISHED = ("evaluations", "exhausted")


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
    are not needed any more are deleted after each answer. Where it has `is_isolated`, evaluations
    have processes of their own, and the end of this one says nothing about an operator.

    Several processes may run one study. Where others evaluate the last operators that the stopper
    allows, this one waits for their answers, and takes over what they leave behind.

    When it is interrupted (Ctrl-C, a mistake of the user found on the way), the open proposal is
    given back and the exception goes on.
    """
    stopper = stopper or default_stopper(study)
    observer = observer or Observer()
    study.counts_attempts = not getattr(evaluator, "is_isolated", False)
    evaluations = getattr(stopper, "evaluations", None)
    waits = False
    try:
        observer.on_start(study.record, study.settings, study.tally())
        while (reason := stopper.check(study.tally())) is None:
            proposals = study.ask(1, evaluations=evaluations)
            if not proposals and not study.exhausted:
                if not waits:
                    observer.on_note(
                        "waiting for the last operators, which other processes evaluate"
                    )
                waits = True
                time.sleep(_LOOK_S)
                continue
            waits = False
            for proposal in proposals:
                observer.on_ask(proposal)
                outcome = _evaluate(study, evaluator, proposal, observer)
                if checkpoints is not None:
                    checkpoints.keep(study.checkpoints_needed)
                if outcome is not None:
                    observer.on_tell(proposal, outcome, study.tally())
        study.stop(reason)
        if checkpoints is not None and reason.name in _FINISHED:
            checkpoints.keep(functools.partial(study.checkpoints_needed, finished=True))
    except KeyboardInterrupt:
        study.stop(StopReason("interrupted", "interrupted from the keyboard"))
        raise
    finally:
        study.close()
    observer.on_stop(reason)
    return reason


def _evaluate(
    study: Study, evaluator: Evaluator | RungEvaluator, proposal: Proposal, observer: Observer
) -> Outcome | None:
    """Stores the answer; None where another process took the proposal over meanwhile."""
    try:
        with Heartbeat(study.store, proposal.id, study.worker):
            if proposal.is_baseline:
                outcome = _evaluate_baseline(evaluator, proposal, observer)
            else:
                outcome = _evaluate_operator(study, evaluator, proposal, observer)
        study.tell(proposal.id, outcome)
    except (AlreadyAnsweredError, LeaseLostError) as error:
        study.drop(proposal, error)
        observer.on_note(f"the result is not stored: {error}")
        return None
    except BaseException:
        # The first error is the one to tell; a lease that stays is void once the study is closed.
        with contextlib.suppress(UserError):
            study.release(proposal.id)
        raise
    return outcome


def _rung(proposal: Proposal) -> tuple[int, ...]:
    """What the evaluator of a study with a ladder is told besides."""
    return () if proposal.rung is None else (proposal.rung,)


def _evaluate_baseline(
    evaluator: Evaluator | RungEvaluator, proposal: Proposal, observer: Observer
) -> Outcome:
    """Once more, too, what failed as if something outside it had been the reason."""
    outcome = evaluator.baseline(*_rung(proposal))
    for _ in range(MOST_FAILURES - 1):
        if failure_kind(outcome) is None:
            break
        observer.on_failure(proposal, outcome)
        outcome = evaluator.baseline(*_rung(proposal))
    return outcome


def _evaluate_operator(
    study: Study, evaluator: Evaluator | RungEvaluator, proposal: Proposal, observer: Observer
) -> Outcome:
    """Evaluates once more what failed as if something outside the operator had been the reason."""
    operator = proposal.operator
    assert operator is not None
    while True:
        outcome = evaluator.evaluate(operator, *_rung(proposal))
        kind = failure_kind(outcome)
        if kind is None:
            return outcome
        if study.failed(proposal.id, kind, outcome.reason):
            return replace(outcome, reason=in_quarantine(outcome.reason))
        observer.on_failure(proposal, outcome)
