"""The history of a study, which search methods use: proposed operators and their trials."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from syno.store.documents import PredictedLatency
from syno.store.objective import ACCURACY, Objective
from syno.store.objectives import Objectives

if TYPE_CHECKING:
    from syno.store import Evaluation


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
        """See `syno.store.objectives.ComparedResult`."""
        predicted = self.predicted_latency
        return {"loss": self.loss, "peak_bytes": self.memory, "predicted_latency": predicted}


@dataclass(frozen=True)
class HistoryEntry:
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


class Lineage:
    """What histories of one study have in common, each of which continues the one before.

    A method that keeps something for speed may read here what is new since its last history.
    """

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._changes: list[int] = []

    def added(self, key: str) -> None:
        """Note that the next entry has this key."""
        self._keys.append(key)

    def changed(self, place: int) -> None:
        """Note that an entry is another one than before."""
        self._changes.append(place)

    def now(self) -> Moment:
        """Return the present moment, which belongs to a history."""
        return Moment(self, len(self._keys), len(self._changes))


@dataclass(frozen=True)
class Moment:
    """The place of a history in its lineage: after so many entries and changes of entries."""

    lineage: Lineage
    entries: int = 0
    changes: int = 0

    def follows(self, before: Moment | None) -> bool:
        """Whether this history continues the one of another moment."""
        return (
            before is not None
            and before.lineage is self.lineage
            and before.entries <= self.entries
            and before.changes <= self.changes
        )

    def keys(self, before: Moment) -> list[str]:
        """Return the keys of the entries since another moment."""
        return self.lineage._keys[before.entries : self.entries]

    def changed(self, before: Moment) -> set[int]:
        """Return the places of the entries that are others than at another moment."""
        found = set(self.lineage._changes[before.changes : self.changes])
        return {place for place in found if place < before.entries}


@dataclass(frozen=True)
class History:
    """The operators that a study has proposed, in their order; `ask` is the next number.

    objective: the objective of the study.
    baseline: the trials of the original network, where the study evaluates it.
    objectives: all of the study, with its constraints; None if `objective` is all there is.
    has_rungs: whether operators are evaluated at the rungs of a ladder.
    moment: where the history stands among those of its study; None if it stands alone. Methods may
        use it to be faster, and propose the same without it.
    """

    ask: int
    entries: tuple[HistoryEntry, ...]
    objective: Objective = ACCURACY
    baseline: tuple[Trial, ...] = ()
    objectives: Objectives | None = None
    has_rungs: bool = False
    moment: Moment | None = field(default=None, compare=False, repr=False)

    @property
    def keys(self) -> set[str]:
        """The keys of all proposed operators."""
        return {entry.key for entry in self.entries}


def as_trial(evaluation: Evaluation, objective: Objective) -> Trial:
    """Return an evaluation as methods see it; `objective` is that of the study."""
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
