"""A search whose proposals others evaluate: it proposes, and workers (`worker.py`) take and answer.

The driver keeps a few proposals waiting in the store. Before each of them it reads what is new in
the log, and the event of a proposal holds how many events it has seen: so the proposals follow from
the log, whichever worker answers when.

A driver has a lease on its study. When it dies, another one takes over and goes on from the log.
"""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable

from syno._util.errors import UserError
from syno.store import DriverLostError, Evaluation, Outcome, Snapshots
from syno.store.errors import persistently
from syno.store.records import OPERATOR, BaselineLatency, MeasurementResult
from syno.study.evaluate.checkpoints import Checkpoints
from syno.study.evaluate.weights import Weights
from syno.study.heartbeat import driver_beats
from syno.study.loop import FINISHED, baseline_failure, default_stopper
from syno.study.observer import StudyObserver
from syno.study.sparingly import Sparingly
from syno.study.stoppers import StopReason, StudyStopper
from syno.study.study import Study

LOOK_S = 0.1  # between two looks at the number of events
PAUSE_S = 1.0  # after which workers, limits and leases are looked at in any case
_ALONE_S = 20.0  # without any worker, after which a note says so
# Reasons to stop that let workers take what is waiting still.
_COMPLETE = ("evaluations", "exhausted")


def drive(
    study: Study,
    *,
    stopper: StudyStopper | None = None,
    observer: StudyObserver | None = None,
    checkpoints: Checkpoints | None = None,
    weights: Weights | None = None,
    watch: Callable[[], None] | None = None,
) -> StopReason:
    """Propose until the stopper stops the study, while workers evaluate.

    If another process drives the study, this one waits and takes over when that one dies.

    Args:
        study: the study.
        stopper: when to stop; `default_stopper` if not given. What workers are evaluating then is
            completed.
        observer: is called with the progress of the search.
        checkpoints, weights: as in `run`, of this machine.
        watch: is called about once a second; an exception of it ends the search.

    Returns:
        Why the study stopped.
    """
    driver = Driver(study, stopper or default_stopper(study), observer or StudyObserver())
    driver.checkpoints, driver.weights = checkpoints, weights
    driver.watch = watch or (lambda: None)
    study.counts_progress |= getattr(driver.stopper, "looks_at_progress", False)
    try:
        while True:
            driver.take_over()
            try:
                assert study.driver is not None
                with driver_beats(study.store, study.record, study.driver):
                    reason = driver.lead()
                break
            except DriverLostError as error:
                driver.observer.on_note(str(error))
                study.driver = None
        study.stop(reason)
        if checkpoints is not None and reason.name in FINISHED:
            checkpoints.keep(functools.partial(study.checkpoints_needed, finished=True))
        if weights is not None:
            weights.keep(study.weights_needed)
    except KeyboardInterrupt:
        study.stop(StopReason("interrupted", "interrupted from the keyboard"))
        raise
    finally:
        driver.leave()
        study.close()
    driver.observer.on_stop(reason)
    return reason


def kept_waiting(workers: int) -> int:
    """Return how many proposals may wait for so many workers before another one is made."""
    return workers // 4


class Driver:
    """Proposes for one study, step by step: see `drive`, which calls the methods in their order.

    Args:
        study: the study.
        stopper, observer: as in `drive`.

    Attributes:
        made: the number of proposals that it has stored.
    """

    def __init__(self, study: Study, stopper: StudyStopper, observer: StudyObserver) -> None:
        self.study, self.stopper, self.observer = study, stopper, observer
        self.checkpoints: Checkpoints | None = None
        self.weights: Weights | None = None
        self.watch: Callable[[], None] = lambda: None
        self._limit: int | None = getattr(stopper, "evaluations", None)
        self.made = 0
        self._final: StopReason | None = None  # that lets workers take nothing more
        self._reported = 0  # events that the observer knows
        self._keep_checkpoints, self._keep_weights = Sparingly(), Sparingly()
        self._count = 0  # of workers, as they were counted last
        self._counting = Sparingly()
        self._alone_since = time.monotonic()
        self._snapshots = Snapshots(study.store, observer.on_note)

    def take_over(self) -> None:
        """Become the driver, as soon as no other process is."""
        store, waits = self.study.store, False
        drive = functools.partial(store.presence.drive, self.study.record, self.study.worker)
        while (token := persistently(drive, self.observer.on_note)) is None:
            if not waits:
                self.observer.on_note(
                    "another process drives this study; this one takes over when that one ends"
                )
            waits = True
            self.watch()
            time.sleep(PAUSE_S)
        self.study.driver = token

    def leave(self) -> None:
        """Let workers take nothing more of the study."""
        if self.study.driver is not None:
            with contextlib.suppress(UserError):  # the first error is the one to report
                self.study.store.presence.leave_driver(self.study.record, self.study.driver)

    def lead(self) -> StopReason:
        """Propose until the stopper stops the study and no evaluation runs."""
        study = self.study
        self._reported = study.follow().seen
        self.observer.on_start(study.record, study.settings, study.tally())
        while True:
            reason = persistently(self.step, self.observer.on_note)
            if reason is not None:
                return reason

    def step(self) -> StopReason | None:
        """Look at the study, and propose or wait; return why to stop, once nothing runs."""
        study, state = self.study, self.study.follow()
        seen = state.seen
        self._report()
        self._snapshots.step()
        self.watch()
        study.exhausted = study.exhausted and not self._has_more()
        reason = self._final or baseline_failure(state.baselines)
        reason = reason or self.stopper.check(study.tally(follow=False))
        if reason is None:
            if self._propose():
                return None
        elif reason.name in _COMPLETE:
            if not state.opened:
                return reason
        else:
            self._final = reason
            self.leave()
            if study.store.waiting(study.record) == len(study.follow().opened):
                return reason
        self.wait(seen)
        return None

    def _has_more(self) -> bool:
        """Whether results may have made promotions due since the method had nothing left."""
        return self.study.tally().due > 0

    def _propose(self) -> bool:
        """Store another proposal, unless enough are waiting; return whether it did."""
        study = self.study
        if study.exhausted or not self._may_propose():
            return False
        if study.store.waiting(study.record) > kept_waiting(self._workers()):
            return False
        proposal = study.propose(self._limit)
        self.made += proposal is not None
        return proposal is not None

    def _may_propose(self) -> bool:
        """Operators wait for the result of the baseline, with which theirs are compared."""
        return all(record.status is not None for record in self.study.state.originals)

    def _able(self) -> list[str]:
        """List the workers that can evaluate proposals of the study, by their names."""
        return self.study.store.presence.able(self.study.settings.needs)

    def _workers(self) -> int:
        """Count the workers that can evaluate proposals of the study."""
        self._counting(self._count_workers)
        return self._count

    def _count_workers(self) -> None:
        self._count = len(self._able())
        if self._count:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > _ALONE_S:
            needs = sorted(set(self.study.settings.needs))
            there = needs and self.study.store.presence.able(())
            tags = f" with the tag {', '.join(needs)}" if there else ""
            self.observer.on_note(
                f"no worker{tags} is there: `syno worker --store URL` starts one, on any machine "
                "that reaches the store"
            )

    def wait(self, seen: int) -> None:
        """Wait for an event, or a moment."""
        until = time.monotonic() + PAUSE_S
        while time.monotonic() < until:
            time.sleep(LOOK_S)
            if self.study.store.sequence(self.study.record) != seen:
                return

    def _report(self) -> None:
        """Tell the observer about the results since the last time, in the order of the log."""
        study, state = self.study, self.study.state
        told = [event for event in state.events[self._reported :] if event.kind == "told"]
        self._reported = state.seen
        if not told:
            return
        if self.checkpoints is not None:
            keep = functools.partial(self.checkpoints.keep, study.checkpoints_needed)
            self._keep_checkpoints(keep)
        if self.weights is not None:
            self._keep_weights(functools.partial(self.weights.keep, study.weights_needed))
        for event in told:
            ask, rung = event.data["ask"], event.data.get("rung", 0)
            results = [e for e in state.evaluations_of(ask) if e.rung_index == rung]
            if results:  # none: it was let out of quarantine meanwhile
                proposal = study.proposal(state.proposal(ask), rung)
                self.observer.on_ask(proposal)
                tally = study.tally(follow=False)
                self.observer.on_tell(proposal, _outcome(results[-1]), tally)


def _outcome(found: Evaluation) -> Outcome:
    """Return a stored evaluation as the outcome that it was."""
    latency = measurement = None
    if found.latency_ms is not None:
        own = BaselineLatency(found.latency_ms, found.latency_spread_ms or 0.0)
        if found.kind == OPERATOR and found.latency_ratio is not None:
            original = BaselineLatency(found.baseline_latency_ms or 0.0, 0.0)
            measurement = MeasurementResult(
                own.median_ms,
                own.spread_ms,
                found.latency_ratio,
                original,
                threads=found.environment.threads,
                repeats=0,
            )
        else:
            latency = own
    return Outcome(
        found.status,
        found.reason,
        found.accuracy,
        found.split,
        found.rung,
        found.recipe,
        found.seed,
        found.seconds,
        found.macs,
        found.params,
        found.primitives,
        measurement=measurement,
        latency=latency,
        details=found.details,
    )
