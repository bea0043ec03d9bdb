"""The history of a study, which search methods use: proposed operators and their trials."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno.store.documents import PredictedLatency
from syno.store.objective import ACCURACY, Objective
from syno.store.objectives import Objectives
from syno.store.records import BASELINE

if TYPE_CHECKING:
    from syno.store import Evaluation, EventRecord, ProposalRecord


@dataclass(frozen=True)
class Trial:
    """One evaluation of an operator, at one rung.

    rung: of the study's ladder, from 0 at the bottom; 0 without a ladder.
    status: `ok`, `error`, `timeout` or `rejected`, with a reason in words.
    objective: the value of the study's objective (`History.objective`) on the validation split.
    accuracy: on the validation split, a share of one; loss: on text, in nats a token.
    losses: the training losses, one for each epoch; None where one was not finite.
    latency_ms: the median latency of the network with the operator in it, in milliseconds;
        latency_ratio: the same divided by the latency of the original network in that run.
    macs, params: of the layers that the operator replaces, for one sample.
    seed: of the training; seconds: wall-clock time of the evaluation.
    memory: the peak memory of the training in bytes.
    predicted_latency: of a trial without a measured one, see `PredictedLatency`.

    What the evaluation did not measure is None.
    """

    rung: int
    status: str
    reason: str
    objective: float | None
    accuracy: float | None
    loss: float | None
    losses: tuple[float | None, ...]
    latency_ms: float | None
    latency_ratio: float | None
    macs: int | None
    params: int | None
    seed: int
    seconds: float
    memory: int | None = None
    predicted_latency: PredictedLatency | None = None

    @property
    def details(self) -> dict[str, object]:
        """See `syno.store.objectives.Result`."""
        predicted = self.predicted_latency
        return {"loss": self.loss, "peak_bytes": self.memory, "predicted_latency": predicted}


@dataclass(frozen=True)
class Entry:
    """One proposed operator: `status` is None while it is pending, then that of its first trial.

    value: its rating from 0 to 1, greater is better; None while it is pending. It is the
        validation accuracy, or with a ladder the rank at the highest rung (`asha.values`), and 0
        for a failure.
    text: the operator's text, which `Operator.from_text` reads.
    trials: its evaluations in the order in which they ended.
    told: the number of operators that had been proposed when its first trial ended; None: before
        the next proposal.
    """

    ask: int
    key: str
    status: str | None
    value: float | None = None
    text: str = ""
    trials: tuple[Trial, ...] = ()
    told: int | None = None

    @property
    def last(self) -> Trial | None:
        """The trial that ended last, which with a ladder is at the highest rung."""
        return self.trials[-1] if self.trials else None

    @property
    def accuracies(self) -> dict[int, float]:
        """The accuracy at each rung that has one."""
        return {t.rung: t.accuracy for t in self.trials if t.accuracy is not None}


@dataclass(frozen=True)
class History:
    """The operators that a study has proposed, in their order; `ask` is the next number.

    objective: the objective of the study.
    baseline: the trials of the original network, where the study evaluates it.
    objectives: the targets and constraints of the study; None if `objective` is all there is.
    has_rungs: whether operators are evaluated at the rungs of a ladder.
    """

    ask: int
    entries: tuple[Entry, ...]
    objective: Objective = ACCURACY
    baseline: tuple[Trial, ...] = ()
    objectives: Objectives | None = None
    has_rungs: bool = False

    @property
    def keys(self) -> set[str]:
        """The keys of all proposed operators."""
        return {entry.key for entry in self.entries}


def make_history(
    number: int,
    proposals: Iterable[ProposalRecord],
    evaluations: Iterable[Evaluation],
    values: Mapping[int, float],
    objectives: Objectives,
    told: Mapping[int, int] | None = None,
    *,
    has_rungs: bool = False,
) -> History:
    """Make the history before proposal `number` from the records of the store.

    Args:
        number: of the next proposal.
        proposals: of the study.
        evaluations: as `Store.evaluations` returns them.
        values: the rating of each operator, by proposal number.
        objectives: of the study.
        told: as `told_after` returns it.
        has_rungs: whether the study has a ladder.
    """
    told = told or {}
    objective = objectives.objective
    trials: dict[int, list[Trial]] = {}
    for evaluation in evaluations:
        trials.setdefault(evaluation.ask, []).append(_trial(evaluation, objective))
    entries: list[Entry] = []
    baseline: tuple[Trial, ...] = ()
    for p in proposals:
        own = tuple(trials.get(p.ask, ()))
        if p.kind == BASELINE:
            baseline = own
        elif p.key is not None:
            value, text = values.get(p.ask), p.text or ""
            entries.append(Entry(p.ask, p.key, p.status, value, text, own, told.get(p.ask)))
    several = None if objectives.are_default else objectives
    return History(number, tuple(entries), objective, baseline, several, has_rungs)


def told_after(
    events: Iterable[EventRecord], proposals: Iterable[ProposalRecord]
) -> dict[int, int]:
    """Count how many operators were proposed without the first result of each proposal.

    A proposal follows from the events that were there when the history was read (`seen`), and a
    result may arrive between that and the event of the proposal.
    """
    operators = {p.ask for p in proposals if p.kind != BASELINE}
    seen: list[int] = []  # by each proposal of an operator, in order
    told: dict[int, int] = {}
    for event in events:
        if event.kind == "asked" and event.data["ask"] in operators:
            seen.append(event.data.get("seen", event.sequence - 1))
        elif event.kind == "told":
            told.setdefault(event.data["ask"], event.sequence)
    return {ask: bisect.bisect_left(seen, sequence) for ask, sequence in told.items()}


def _trial(evaluation: Evaluation, objective: Objective) -> Trial:
    return Trial(
        rung=evaluation.rung_index,
        status=evaluation.status,
        reason=evaluation.reason,
        objective=objective.of(evaluation.accuracy, evaluation.details),
        accuracy=evaluation.accuracy,
        loss=evaluation.details.get("loss"),
        losses=tuple(evaluation.details.get("losses", ())),
        latency_ms=evaluation.latency_ms,
        latency_ratio=evaluation.latency_ratio,
        macs=evaluation.macs,
        params=evaluation.params,
        seed=evaluation.seed,
        seconds=evaluation.seconds,
        memory=evaluation.details.get("peak_bytes"),
        predicted_latency=evaluation.details.get("predicted_latency"),
    )
