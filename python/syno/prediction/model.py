"""The model of a latency: resources at learned rates, times a factor that features predict.

    seconds = max(floor, rest + sum over resources of factor * seconds at the peak rate) * exp(g)

The factors are positive and start from those of one processor, so that the sum extrapolates over
sizes and has a value before anything is measured. `rest` is what else a network does, one number
for each network on each device. `g` is a Gaussian process, or a forest where there are many
samples, over features that hardly depend on the size; far from all samples it is about 0. The
deviation of its logarithm is scaled so that it agrees with the errors of families that were left
out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from syno.prediction.device import Device
from syno.prediction.work import AMOUNTS, RESOURCES, Work
from syno.surrogate.models import SurrogateModel, fit_model

Array = NDArray[np.float64]

# Times the seconds at the peak rate: where a fit starts, and stays for what it saw nothing of.
_START: Mapping[str, float] = {
    "product": 0.95,
    "product_loads": 0.2,
    "product_tiles": 4.0,
    "multiply": 0.4,
    "plain": 1.5,
    "splat": 0.4,
    "partial": 2.0,
    "strided": 0.15,
    "scattered": 1.7,
    "rows": 2.5,
    "tests": 0.4,
    "memory": 0.7,
    "weights": 0.6,
    "phases": 0.2,
    "calls": 0.5,
}
# How far logarithms of factors move away from that: a deviation, against errors of _NOISE.
_PRIOR, _NOISE = 1.0, 0.2
# The deviation of a logarithm before anything is measured.
_UNKNOWN = 0.7
# Medians of the error beyond which a sample is an outlier.
_OUTLIER = 6.0
# Fewer samples say nothing about features.
_LEAST = 20
# More make a Gaussian process slow.
_MOST_GAUSSIAN = 600
_FOLDS = 5
# Of the normal distribution: 90 % lie within so many deviations.
NINETY = 1.645
_PLACES = {name: place for place, name in enumerate(AMOUNTS)}
_OF_PRODUCTS = (
    "log_rows", "log_columns", "log_terms", "log_taps", "log_slices", "log_panel", "in_place",
    "paired", "over_columns", "private",
)  # fmt: skip
_OF_LOOPS = (
    "log_count", "log_lane", "log_tile", "log_sums", "log_inner", "lane_use", "conditions",
    "divisions", "panel_steps",
)  # fmt: skip


@dataclass(frozen=True)
class LatencySubject:
    """What a latency is of.

    network: what runs beside the kernels, with the device; empty for kernels alone.
    """

    work: Work
    device: Device
    network: str = ""

    @property
    def rest(self) -> str:
        """The name of the number of seconds for what else the network does."""
        return "" if not self.network else f"{self.network}\n{self.device.name}"


@dataclass(frozen=True)
class Predicted:
    """Natural logarithms of seconds and their standard deviations, [subjects] each."""

    logarithm: Array
    deviation: Array


class LatencyModel:
    """See the module.

    Args:
        subjects: what was measured.
        seconds: its latencies.
        families: subjects of one family are left out together for the deviation.
        seed: of the random numbers.
    """

    def __init__(
        self,
        subjects: Sequence[LatencySubject],
        seconds: Sequence[float],
        families: Sequence[str],
        seed: int = 0,
    ) -> None:
        self._base = _Base(subjects, np.log(np.asarray(seconds, dtype=float)))
        self._model: SurrogateModel | None = None
        self._scale, self._share, self._noise = 1.0, 1.0, _UNKNOWN
        if not subjects:
            return
        targets = np.log(np.asarray(seconds, dtype=float))
        left = targets - self._base.logarithms(subjects)
        self._noise = float(np.sqrt((left**2).sum() + 4 * _UNKNOWN**2) / math.sqrt(len(left) + 4))
        if len(left) < _LEAST:
            return
        self._model = _fitted(_features(subjects, self._base), left, seed)
        self._calibrate(subjects, targets, families, seed)

    @property
    def factors(self) -> dict[str, float]:
        """The learned factor of each resource."""
        return dict(zip(RESOURCES, np.exp(self._base.factors).tolist(), strict=True))

    def knows(self, subject: LatencySubject) -> bool:
        """Whether it has seen what else runs in the network of a subject."""
        return not subject.rest or subject.rest in self._base.rests

    def predict(self, subjects: Sequence[LatencySubject]) -> Predicted:
        """Predict the latencies of subjects."""
        if not subjects:
            return Predicted(np.zeros(0), np.zeros(0))
        logarithm = self._base.logarithms(subjects)
        deviation = np.full(len(logarithm), self._noise)
        if self._model is not None:
            found = self._model.predict(_features(subjects, self._base))
            logarithm = logarithm + self._share * found.mean
            deviation = self._scale * np.sqrt(found.deviation**2 + self._noise**2)
        floors = np.log([max(subject.work.floor, 1e-12) for subject in subjects])
        return Predicted(np.maximum(logarithm, floors), deviation)

    def _calibrate(
        self, subjects: Sequence[LatencySubject], targets: Array, families: Sequence[str], seed: int
    ) -> None:
        """Take as much of `g`, and such deviations, as families say that it was fitted without."""
        true, means, deviations = [], [], []
        for fold in folds(families, seed):
            rest = np.setdiff1d(np.arange(len(subjects)), fold)
            if len(rest) < _LEAST:
                continue
            known, others = [subjects[n] for n in rest], [subjects[n] for n in fold]
            base = _Base(known, targets[rest])
            left = targets[rest] - base.logarithms(known)
            found = _fitted(_features(known, base), left, seed).predict(_features(others, base))
            true.append(targets[fold] - base.logarithms(others))
            means.append(found.mean)
            deviations.append(found.deviation)
        if not true:  # one family
            return
        target, mean, deviation = (np.concatenate(each) for each in (true, means, deviations))
        inside = np.abs(target) <= _OUTLIER * np.median(np.abs(target))
        share = float(target[inside] @ mean[inside]) / max(float(mean @ mean), 1e-12)
        self._share = min(max(share, 0.0), 1.0)
        error = np.abs(target - self._share * mean)
        # A part that all have, and the model's own for what is far from its samples.
        self._noise = max(float(np.median(error)), 1e-3)
        known_by = np.sqrt(deviation**2 + self._noise**2)
        self._scale = float(np.quantile(error / known_by, 0.9)) / NINETY


class _Base:
    """The sum of resources at learned rates, with its floor."""

    def __init__(self, subjects: Sequence[LatencySubject], targets: Array) -> None:
        start = np.log([_START[name] for name in RESOURCES])
        self.rests = {
            name: place
            for place, name in enumerate(dict.fromkeys(s.rest for s in subjects if s.rest))
        }
        self.factors, self._rest = start, np.zeros(len(self.rests))
        if not subjects:
            return
        from scipy.optimize import minimize

        resources, which = self._arrays(subjects)
        rest = np.zeros(len(self.rests))
        for place in range(len(rest)):
            rest[place] = 0.3 * np.median(np.exp(targets[which == place]))
        first = np.concatenate([start, np.log(rest)])
        # What else a network does can be anything.
        width = np.concatenate([np.full(len(start), _PRIOR), np.full(len(rest), 10.0)])

        def loss(values: Array) -> tuple[float, Array]:
            parts = resources * np.exp(values[: len(start)])
            rests = np.exp(values[len(start) :])
            whole = parts.sum(axis=1) + _picked(rests, which)
            error = (np.log(whole) - targets) / _NOISE
            # Huber's loss: a noisy measurement does not move everything else.
            slope = np.clip(error, -3, 3)
            value = np.where(np.abs(error) <= 3, error**2 / 2, 3 * np.abs(error) - 4.5).sum()
            slope = slope / _NOISE / whole
            gradient = np.concatenate([slope @ parts, np.zeros(len(rest))])
            np.add.at(
                gradient[len(start) :],
                which[which >= 0],
                slope[which >= 0] * rests[which[which >= 0]],
            )
            away = (values - first) / width
            return float(value + (away**2).sum() / 2), gradient + away / width

        found = minimize(loss, first, jac=True, method="L-BFGS-B").x
        self.factors, self._rest = found[: len(start)], found[len(start) :]

    def logarithms(self, subjects: Sequence[LatencySubject]) -> Array:
        """Return the logarithms of the sums in seconds, [subjects]."""
        resources, which = self._arrays(subjects)
        whole = resources @ np.exp(self.factors) + _picked(np.exp(self._rest), which)
        floors = np.array([subject.work.floor for subject in subjects])
        return np.asarray(np.log(np.maximum(np.maximum(whole, floors), 1e-9)))

    def _arrays(self, subjects: Sequence[LatencySubject]) -> tuple[Array, NDArray[np.int64]]:
        resources = np.array([subject.work.resources for subject in subjects])
        which = [self.rests.get(subject.rest, -1) for subject in subjects]
        return resources, np.array(which, dtype=np.int64)


def _features(subjects: Sequence[LatencySubject], base: _Base) -> Array:
    """Return features that hardly depend on the size, [subjects, features]."""
    amounts = np.array([subject.work.amounts for subject in subjects])
    column = {name: amounts[:, place] for name, place in _PLACES.items()}
    whole = base.logarithms(subjects)
    tiny = 1e-12
    found = [whole, np.log(column["floor"] + tiny) - whole]
    parts = amounts[:, : len(RESOURCES)] * np.exp(base.factors)
    found += list((parts / np.exp(whole)[:, None]).T)
    found.append(column["product_macs"] / (column["macs"] + tiny))
    found += [column[name] / (column["product_macs"] + tiny) for name in _OF_PRODUCTS]
    found += [column[name] / (column["loop_steps"] + tiny) for name in _OF_LOOPS]
    found += [column[name] / (column["kernels"] + tiny) for name in ("set", "batch")]
    found.append(column["phases"] / (column["calls"] + tiny))
    devices = [subject.device for subject in subjects]
    found.append(np.log([device.roofline.flops for device in devices]))
    found.append(np.log([float(device.threads) for device in devices]))
    found.append(np.array([float(bool(subject.network)) for subject in subjects]))
    return np.stack(found, axis=1)


def _picked(rests: Array, which: NDArray[np.int64]) -> Array:
    """Return the rest of each subject, 0 without one."""
    return np.append(rests, 0.0)[which]


def _fitted(features: Array, left: Array, seed: int) -> SurrogateModel:
    # An outlier, which the machine was busy for, does not move its neighbours.
    most = _OUTLIER * float(np.median(np.abs(left)))
    targets = np.clip(left, -most, most)
    name = "gaussian" if len(targets) <= _MOST_GAUSSIAN else "forest"
    return fit_model(name, features, targets, seed=seed)


def folds(families: Sequence[str], seed: int, count: int = _FOLDS) -> list[NDArray[np.int64]]:
    """Divide subjects into folds of whole families, of about the same size.

    Args:
        families: of each subject.
        seed: of the order of families.
        count: the number of folds.
    """
    names = sorted(set(families))
    order = np.random.default_rng(seed).permutation(len(names))
    sizes = {name: list(families).count(name) for name in names}
    found: list[list[int]] = [[] for _ in range(count)]
    of_family = {name: [n for n, each in enumerate(families) if each == name] for name in names}
    for place in sorted(order, key=lambda place: -sizes[names[place]]):
        min(found, key=len).extend(of_family[names[place]])
    return [np.array(sorted(fold), dtype=np.int64) for fold in found if fold]
