"""The loop of a search: ask, evaluate and tell, until a stopper stops it."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Iterable
from dataclasses import replace

from syno._util.errors import UserError
from syno.runs.heartbeat import beating
from syno.store import (
    HEARTBEAT_S,
    AlreadyCompletedError,
    Evaluation,
    LeaseLostError,
    Outcome,
    Snapshots,
)
from syno.store.documents import Details
from syno.store.errors import persistently
from syno.store.records import MOST_FAILURES, OK, REJECTED, TIMEOUT
from syno.study.answers import Answers, Proposal, in_quarantine
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.failures import failure_kind
from syno.study.evaluate.protocol import Evaluator, RungEvaluator
from syno.study.evaluate.weights import Weights
from syno.study.observer import StudyObserver
from syno.study.stoppers import (
    ErrorsInARow,
    Evaluations,
    NoProgress,
    Seconds,
    SpaceExhausted,
    StopReason,
    StudyStopper,
)
from syno.study.study import Study

MOST_ERRORS = 10
# Seconds between two looks at evaluations of other processes.
_LOOK_S = 1.0
# Reasons after which a study continues with new limits only.
FINISHED = ("evaluations", "exhausted", "no_progress")


def default_stopper(study: Study) -> StudyStopper:
    """Return a stopper for the limits of the study, and for the end of the space."""
    settings = study.settings
    stopper = SpaceExhausted() | Evaluations(settings.evaluations) | ErrorsInARow(MOST_ERRORS)
    if settings.patience is not None:
        stopper = stopper | NoProgress(settings.patience)
    return stopper if settings.seconds is None else stopper | Seconds(settings.seconds)


def run(
    study: Study,
    evaluator: Evaluator | RungEvaluator,
    *,
    stopper: StudyStopper | None = None,
    observer: StudyObserver | None = None,
    checkpoints: Checkpoints | None = None,
    weights: Weights | None = None,
) -> StopReason:
    """Evaluate proposals one after the other until the stopper stops the study.

    Several processes may run one study. If other processes evaluate the last operators that the
    stopper allows, this process waits for their results, and takes over what they abandon. An
    exception (Ctrl-C, a UserError) releases the pending proposal and is raised again.

    Args:
        study: the study.
        evaluator: a RungEvaluator for a study with a ladder. If its attribute `is_isolated` is
            true, evaluations run in separate processes, and the end of this process does not count
            as a failure of an operator.
        stopper: when to stop; `default_stopper` if not given.
        observer: is called with the progress of the search.
        checkpoints: those of the evaluator. Checkpoints that are no longer needed are deleted after
            each result.
        weights: those that the evaluator writes. Of networks that are not on the Pareto front, they
            are deleted after each result.

    Returns:
        Why the study stopped.
    """
    stopper = stopper or default_stopper(study)
    observer = observer or StudyObserver()
    study.counts_attempts = not getattr(evaluator, "is_isolated", False)
    study.counts_progress |= getattr(stopper, "looks_at_progress", False)
    evaluations = getattr(stopper, "evaluations", None)
    announce = getattr(evaluator, "announce", None)  # see IsolatedEvaluator
    waits = False
    snapshots = Snapshots(study.store, observer.on_note)
    try:
        observer.on_start(study.record, study.settings, study.tally())
        reason = baseline_failure(study.store.summary(study.record).baselines)
        while reason is None and (reason := stopper.check(study.tally())) is None:
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
                if announce is not None:
                    announce(study.next_operator(evaluations))
                outcome = evaluate(study, evaluator, proposal, observer)
                if checkpoints is not None:
                    checkpoints.keep(study.checkpoints_needed)
                if weights is not None:
                    weights.keep(study.weights_needed)
                snapshots.step()
                if outcome is not None:
                    observer.on_tell(proposal, outcome, study.tally())
                    reason = baseline_failure([outcome] if proposal.is_baseline else [])
        assert reason is not None
        study.stop(reason)
        if checkpoints is not None and reason.name in FINISHED:
            checkpoints.keep(functools.partial(study.checkpoints_needed, finished=True))
    except KeyboardInterrupt:
        study.stop(StopReason("interrupted", "interrupted from the keyboard"))
        raise
    finally:
        study.close()
    observer.on_stop(reason)
    return reason


class PreemptedError(BaseException):
    """The system asks this process to end soon. It says nothing about what is evaluated."""


def evaluate(
    study: Answers,
    evaluator: Evaluator | RungEvaluator,
    proposal: Proposal,
    observer: StudyObserver,
) -> Outcome | None:
    """Evaluate a proposal and store the result; None if another process took it over meanwhile."""
    outcome = None
    try:
        renew = functools.partial(study.store.renew, proposal.id, study.worker)
        with beating(renew, HEARTBEAT_S):
            if proposal.is_baseline:
                outcome = _evaluate_baseline(evaluator, proposal, observer)
            else:
                outcome = _evaluate_operator(study, evaluator, proposal, observer)
        told = functools.partial(study.tell, proposal.id, outcome)
        persistently(told, observer.on_note)
    except (AlreadyCompletedError, LeaseLostError) as error:
        study.drop(proposal, error, outcome)
        observer.on_note(f"the result does not count: {error}")
        return None
    except BaseException as error:
        # The first error is the one to report; a remaining lease ends when the study is closed.
        with contextlib.suppress(UserError):
            study.release(proposal.id, preempted=isinstance(error, PreemptedError))
        raise
    return outcome


def baseline_failure(results: Iterable[Outcome | Evaluation]) -> StopReason | None:
    """Return why a study stops if its baseline network was rejected or too slow.

    Operators are trained in the same way, so their results would say nothing. An error, such as a
    crash, may have an external cause and does not stop a study.
    """
    failed = next((each for each in results if each.status in _CURES), None)
    if failed is None:
        return None
    return StopReason(
        "baseline",
        f"the training of the baseline network failed ({failed.reason}), so that no operator can "
        f"be judged\n  what to do: start a new study {_CURES[failed.status]}",
    )


# What a user can change if the training of the baseline network ends with a status.
_CURES = {
    REJECTED: "with a fidelity whose recipe the network learns with, such as one with a lower "
    "learning rate (--fidelity), and check the labels of the data; `syno train --baseline` "
    "trains the baseline network only",
    TIMEOUT: "with a longer --deadline-s, or a shorter fidelity (--epochs, --images)",
}


def _rung(proposal: Proposal) -> tuple[int, ...]:
    """Return the additional arguments of the evaluator of a study with a ladder."""
    return () if proposal.rung is None else (proposal.rung,)


def _evaluate_baseline(
    evaluator: Evaluator | RungEvaluator, proposal: Proposal, observer: StudyObserver
) -> Outcome:
    """Evaluate the baseline, and once more after a failure that may have an external cause."""
    outcome = evaluator.baseline(*_rung(proposal))
    for _ in range(MOST_FAILURES - 1):
        if failure_kind(outcome) is None:
            break
        observer.on_failure(proposal, outcome)
        outcome = evaluator.baseline(*_rung(proposal))
    return outcome


def _evaluate_operator(
    study: Answers,
    evaluator: Evaluator | RungEvaluator,
    proposal: Proposal,
    observer: StudyObserver,
) -> Outcome:
    """Evaluate an operator, and once more after a failure that may have an external cause."""
    operator = proposal.operator
    assert operator is not None
    while True:
        outcome = evaluator.evaluate(operator, *_rung(proposal))
        kind = failure_kind(outcome)
        if kind is None:
            return _confirmed(study, evaluator, proposal, outcome, observer)
        if study.failed(proposal.id, kind, outcome.reason):
            return replace(outcome, reason=in_quarantine(outcome.reason))
        observer.on_failure(proposal, outcome)


def _confirmed(
    study: Answers,
    evaluator: Evaluator | RungEvaluator,
    proposal: Proposal,
    outcome: Outcome,
    observer: StudyObserver,
) -> Outcome:
    """Train an operator that looks best again, with other seeds; its value becomes the mean.

    The maximum of many noisy values is too high, so that a lucky training would otherwise lead the
    search. A repetition that fails counts as nothing.
    """
    objective = study.objectives.objective
    first = objective.of(outcome.accuracy, outcome.details)
    if not study.settings.retrain or first is None or not study.looks_best(proposal, outcome):
        return outcome
    operator = proposal.operator
    assert operator is not None
    values = {str(outcome.seed): first}
    seconds = outcome.seconds
    for number in range(1, study.settings.retrain + 1):
        observer.on_note(f"it looks best: training {number + 1} of it, with another seed")
        again = evaluator.repeat(operator, study.settings.seed + number, *_rung(proposal))
        seconds += again.seconds
        value = objective.of(again.accuracy, again.details)
        if again.status == OK and value is not None:
            values[str(study.settings.seed + number)] = value
    mean = sum(values.values()) / len(values)
    details: Details = {**outcome.details, "by_seed": values}
    if objective.field == "accuracy":
        return replace(outcome, accuracy=mean, details=details, seconds=seconds)
    details["loss"] = mean
    return replace(outcome, details=details, seconds=seconds)
