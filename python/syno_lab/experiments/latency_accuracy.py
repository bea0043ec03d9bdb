"""How well latencies of operators are predicted that the predictor has not seen.

Whole families are left out in turn, and whole networks in turn. Beside the predictor stand its
base without features, and two models with one learned number: MACs, and the roofline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syno._util.errors import UserError
from syno._util.tables import Table
from syno.prediction import Device, LatencyPredictor, LatencySample
from syno.prediction.model import NINETY, folds
from syno.surrogate.models import rank_correlation
from syno_lab.experiments.latency_rows import KernelRows

# Fewer kernels cannot be divided.
LEAST = 20
PREDICTOR, MACS, ROOFLINE = "predictor", "MACs", "roofline"

Array = NDArray[np.float64]
_Model = Callable[[Sequence[LatencySample], Sequence[LatencySample]], tuple[Array, Array]]


@dataclass(frozen=True)
class Accuracy:
    """How well one model predicts what was left out.

    left_out: `families`, in turn, or the name of a network. model: `predictor`, `MACs` or
    `roofline`. kernels, operators: that were predicted. spearman: the rank correlation of predicted
    and measured latencies. error: the geometric mean of how many times too large or too small the
    predictions are, 1 if all are right. within: the share of the latencies within the interval that
    is to hold 90 % of them; None for models without an uncertainty.
    """

    left_out: str
    model: str
    kernels: int
    operators: int
    spearman: float
    error: float
    within: float | None


def accuracies(rows: KernelRows, seed: int = 0) -> list[Accuracy]:
    """Predict what was left out, by each model.

    Args:
        rows: measured latencies, of at least 20 kernels.
        seed: of the folds, and of the fits.

    Raises:
        UserError: there are fewer kernels.
    """
    measured = rows.measured
    if len(measured) < LEAST:
        raise UserError(
            f"{len(measured)} measured kernels are too few to leave some out\n"
            f"  expected: at least {LEAST}\n  what to do: measure more, with --operators"
        )
    samples = [row.sample(rows.device) for row in measured]
    families = [row.family for row in measured]
    parts = {"families": folds(families, seed)}
    networks = sorted({row.network for row in measured})
    if len(networks) > 1:
        for name in networks:
            own = [n for n, row in enumerate(measured) if row.network == name]
            parts[name] = [np.array(own, dtype=np.int64)]
    found = []
    for left_out, each in parts.items():
        names = {measured[n].operator for fold in each for n in fold}
        for model, predict in _models(rows.device, seed).items():
            found.append(_accuracy(left_out, model, samples, each, predict, len(names)))
    return found


def table(found: Sequence[Accuracy]) -> Table:
    """One line a model and what was left out."""
    return Table.of(
        found,
        ("left out", lambda each: each.left_out),
        ("model", lambda each: each.model),
        ("operators>", lambda each: str(each.operators)),
        ("kernels>", lambda each: str(each.kernels)),
        ("rank correlation>", lambda each: f"{each.spearman:.3f}"),
        ("error>", lambda each: f"{each.error:.2f}x"),
        ("in 90 %>", lambda each: "" if each.within is None else f"{each.within:.0%}"),
    )


def _models(device: Device, seed: int) -> Mapping[str, _Model]:
    predictor = LatencyPredictor(device, seed=seed)

    def learned(
        known: Sequence[LatencySample], left: Sequence[LatencySample]
    ) -> tuple[Array, Array]:
        found = predictor.fit(known).predict_many([sample.kernels for sample in left])
        logs = np.log([each.seconds for each in found])
        return logs, np.array([each.deviation for each in found])

    def one_number(cost: Callable[[LatencySample], float]) -> _Model:
        def model(
            known: Sequence[LatencySample], left: Sequence[LatencySample]
        ) -> tuple[Array, Array]:
            rates = [math.log(sample.seconds / cost(sample)) for sample in known]
            logs = np.median(rates) + np.log([cost(sample) for sample in left])
            return logs, np.full(len(left), math.nan)

        return model

    def macs(sample: LatencySample) -> float:
        # Copies have none; one for each element would be another model.
        return max(1.0, sum(predictor.work(k)["macs"] for k in sample.kernels))

    def roofline(sample: LatencySample) -> float:
        return sum(predictor.work(kernel).floor for kernel in sample.kernels)

    return {PREDICTOR: learned, MACS: one_number(macs), ROOFLINE: one_number(roofline)}


def _accuracy(
    left_out: str,
    model: str,
    samples: Sequence[LatencySample],
    parts: Sequence[NDArray[np.int64]],
    predict: _Model,
    operators: int,
) -> Accuracy:
    true, logs, deviations = [], [], []
    for part in parts:
        inside = set(part.tolist())
        known = [sample for n, sample in enumerate(samples) if n not in inside]
        left = [samples[n] for n in part]
        if not known or not left:
            continue
        log, deviation = predict(known, left)
        true.append(np.log([sample.seconds for sample in left]))
        logs.append(log)
        deviations.append(deviation)
    a, b, deviation = (np.concatenate(each) for each in (true, logs, deviations))
    within = None if np.isnan(deviation).any() else float((abs(a - b) < NINETY * deviation).mean())
    error = float(np.exp(np.abs(a - b).mean()))
    return Accuracy(left_out, model, len(a), operators, rank_correlation(a, b), error, within)
