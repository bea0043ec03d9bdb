"""Results of trainings as rows: one for each operator and precision, over all seeds."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from syno.store.objective import named
from syno.store.records import FLOAT32
from syno.study.training.comparison import Paired, Spread, paired

if TYPE_CHECKING:
    from syno.operators.operator import Operator
    from syno.store import Evaluation
    from syno.store.documents import Details
    from syno.study.evaluate.run_key import RunKey
    from syno.study.training.results import TrainingStudy
    from syno.study.training.trainings import Trainings

_OF_A_SEED = ("seed", "status", "reason", "accuracy", "latency_ms", "latency_ratio", "seconds")
_DETAILS = (
    *("loss", "perplexity", "tail_loss", "loss_sum", "tokens_per_s", "steps", "losses", "noisy"),
    *("network_macs", "int8_macs", "float_parts", "calibration_images"),
)


@dataclass(frozen=True)
class TrainedSeed:
    """One training.

    status: `ok`, or the kind of failure, with a reason in words.
    accuracy: on the validation split, from 0 to 1.
    latency_ms: the median latency of the network for one sample, in milliseconds.
    latency_ratio: the latency divided by that of the original network in the same run.
    seconds: the wall-clock time of the evaluation.
    details: losses, steps, tokens per second, what is in INT8, and more.
    """

    seed: int
    status: str
    reason: str
    accuracy: float | None
    latency_ms: float | None
    latency_ratio: float | None
    seconds: float
    details: Details

    @staticmethod
    def of(evaluation: Evaluation) -> TrainedSeed:
        """Make the row of a stored evaluation."""
        fields = {name: getattr(evaluation, name) for name in _OF_A_SEED}
        return TrainedSeed(**fields, details=evaluation.details)

    def to_json(self) -> dict[str, object]:
        """As plain values."""
        details: Mapping[str, object] = self.details
        found = {name: details[name] for name in _DETAILS if name in details}
        return {name: getattr(self, name) for name in _OF_A_SEED} | found


@dataclass(frozen=True)
class TrainedOperator:
    """The trainings of one operator in one precision.

    name: `baseline` for the original network, whose id and key are None.
    precision: `float32` or `int8`.
    macs, params: of the layers that the operator replaces, at batch size 1.
    latency_ms, latency_ratio: medians over seeds.
    seconds: the sum over seeds.
    ok: whether there are trainings and all of them succeeded.
    measures: for `accuracy` (from 0 to 1) and, for text, `loss` (nats per token): the spread over
        seeds, and the difference from the original network in float32. Each is None if there is
        nothing to compare.
    """

    name: str
    precision: str
    id: str | None
    key: str | None
    macs: int | None
    params: int | None
    latency_ms: float | None
    latency_ratio: float | None
    seconds: float
    seeds: tuple[TrainedSeed, ...]
    ok: bool
    measures: dict[str, tuple[Spread | None, Paired | None]]

    @property
    def accuracy(self) -> Spread | None:
        """The accuracy on the validation split; None if no training succeeded, and for a loss."""
        return self.measures["accuracy"][0] if "accuracy" in self.measures else None

    @property
    def loss(self) -> Spread | None:
        """The loss on the validation split; None for images, and if no training succeeded."""
        return self.measures["loss"][0] if "loss" in self.measures else None

    def to_json(self) -> dict[str, object]:
        """Return plain values, with `accuracy`, `accuracy_beside_baseline` and those of loss."""
        names = ("name", "precision", "id", "key", "macs", "params", "latency_ms", "latency_ratio")
        row: dict[str, object] = {name: getattr(self, name) for name in (*names, "seconds")}
        row |= {"seeds": [seed.to_json() for seed in self.seeds], "ok": self.ok}
        for measure, (spread, pair) in self.measures.items():
            row[measure] = None if spread is None else dataclasses.asdict(spread)
            row[f"{measure}_beside_baseline"] = None if pair is None else dataclasses.asdict(pair)
        return row


def result_rows(trainings: Trainings, results: TrainingStudy) -> tuple[TrainedOperator, ...]:
    """Make a row for each operator, and after it one for the operator in INT8."""
    keys = trainings.run_keys()
    found = results.evaluations()
    originals = [e for e in found if e.text is None and keys[0].counts(e)]
    named: list[tuple[str, Operator | None]] = [("baseline", None)] if originals else []
    named += [(c.name, o) for c, o in zip(trainings.chosen, trainings.operators, strict=True)]
    rows = []
    for name, operator in named:
        text = None if operator is None else operator.text
        for key in keys:
            own = [e for e in found if e.text == text and key.counts(e)]
            own = [e for e in own if e.seed in trainings.seeds] or own
            rows.append(_row(name, operator, key, own, originals, trainings.measures))
    return tuple(rows)


def _row(
    name: str,
    operator: Operator | None,
    key: RunKey,
    own: Sequence[Evaluation],
    originals: Sequence[Evaluation],
    fields: Sequence[str],
) -> TrainedOperator:
    is_original = operator is None and key.precision == FLOAT32
    measures: dict[str, tuple[Spread | None, Paired | None]] = {}
    for measure in fields:
        values, base = _values(own, measure), _values(originals, measure)
        pair = None
        if not is_original:
            pair = paired(values, base, greater_is_better=measure == "accuracy")
        measures[measure] = (Spread.of(list(values.values())), pair)
    return TrainedOperator(
        name=name,
        precision=key.precision,
        id=None if operator is None else operator.structure,
        key=None if operator is None else operator.key,
        macs=next((e.macs for e in own), None),
        params=next((e.params for e in own), None),
        latency_ms=_middle(own, "latency_ms"),
        latency_ratio=_middle(own, "latency_ratio"),
        seconds=sum(e.seconds for e in own),
        seeds=tuple(TrainedSeed.of(e) for e in own),
        ok=bool(own) and all(e.status == "ok" for e in own),
        measures=measures,
    )


def _middle(evaluations: Sequence[Evaluation], name: str) -> float | None:
    """The median over seeds."""
    values = [getattr(e, name) for e in evaluations]
    found = [value for value in values if value is not None]
    return statistics.median(found) if found else None


def _values(evaluations: Sequence[Evaluation], measure: str) -> dict[int, float]:
    """Return the values by seed, without failed trainings."""
    objective = named(measure)
    found = {e.seed: objective.of(e.accuracy, e.details) for e in evaluations if e.status == "ok"}
    return {seed: value for seed, value in found.items() if value is not None}
