"""A predictor of latencies: what it learned from, as a document, and predictions.

Models are not stored, but fitted again: a fit takes seconds, and its document can be read by people
and by other versions of the libraries.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from syno._util import checks
from syno._util.arguments import checked, path
from syno._util.errors import UserError
from syno._util.json_types import Json, JsonObject
from syno.operators.operator import Operator
from syno.prediction.device import Device
from syno.prediction.model import NINETY, LatencyModel, LatencySubject
from syno.prediction.work import Work, kernel_work, no_work
from syno.runs.files import read_json, write_text

FORMAT = "syno latency predictor"
VERSION = 1
_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class Workload:
    """An operator under a binding as compiled code, `count` times."""

    operator: Operator
    binding: Mapping[str, int]
    count: int = 1


@dataclass(frozen=True)
class LatencySample:
    """A measured latency.

    kernels: operators that run one after another. seconds: the latency of all of them, and of the
    rest of the network, if it is not empty. family: samples of one family are left out together
    when the uncertainty is calibrated.
    """

    kernels: tuple[Workload, ...]
    seconds: float
    device: Device
    network: str = ""
    family: str = ""


@dataclass(frozen=True)
class LatencyPrediction:
    """A predicted latency, which is no measurement.

    seconds: the median of its distribution; low, high: 90 % of it lie between. deviation: of the
    natural logarithm. whole: whether what else the network does is part of it; False for kernels
    alone, and for a network of which nothing was measured.
    """

    seconds: float
    low: float
    high: float
    deviation: float
    whole: bool


class LatencyPredictor:
    """Predicts latencies of compiled operators, and of networks with them.

    Args:
        device: that predictions are for; default: that of the samples, or this machine.
        seed: of the random numbers of fits.
    """

    def __init__(self, device: Device | None = None, *, seed: int = 0) -> None:
        self._device = device
        self._seed = seed
        self._samples: tuple[LatencySample, ...] = ()
        self._works: dict[tuple[str, str, Device], Work] = {}
        self._model = LatencyModel([], [], [], seed)

    @property
    def samples(self) -> tuple[LatencySample, ...]:
        """What it was fitted to."""
        return self._samples

    @property
    def device(self) -> Device:
        """The device that predictions are for."""
        if self._device is None:
            self._device = self._samples[0].device if self._samples else Device.here()
        return self._device

    @property
    def factors(self) -> dict[str, float]:
        """What the seconds of each resource at its peak rate are multiplied with."""
        return self._model.factors

    def fit(self, samples: Iterable[LatencySample]) -> LatencyPredictor:
        """Learn from samples, instead of those before.

        Returns:
            The predictor itself.

        Raises:
            UserError: a latency is not positive, or an operator does not fit its binding.
        """
        found = tuple(samples)
        for sample in found:
            if not (math.isfinite(sample.seconds) and sample.seconds > 0):
                raise UserError(f"a latency must be positive, got {sample.seconds!r} seconds")
            if not sample.kernels:
                raise UserError("a sample of a latency has no kernels")
            for kernel in sample.kernels:
                checks.whole("the count of a kernel", kernel.count, 1)
        subjects = [self._subject(s.kernels, s.device, s.network) for s in found]
        seconds = [sample.seconds for sample in found]
        families = [sample.family for sample in found]
        self._model = LatencyModel(subjects, seconds, families, self._seed)
        self._samples = found
        return self

    def predict(
        self,
        kernels: Operator | Sequence[Workload],
        binding: Mapping[str, int] | str | None = None,
        *,
        device: Device | None = None,
        network: str = "",
    ) -> LatencyPrediction:
        """Predict a latency.

        Args:
            kernels: an operator, or all kernels of a network.
            binding: values of the variables of one operator.
            device: what it runs on; default: `device`.
            network: the name of the network around the kernels, as in the samples.

        Raises:
            UserError: the operator does not fit the binding.
        """
        if isinstance(kernels, Operator):
            kernels = (Workload(kernels, kernels.complete(binding or {})),)
        (found,) = self.predict_many([kernels], device=device, network=network)
        return found

    def predict_many(
        self,
        networks: Sequence[Sequence[Workload]],
        *,
        device: Device | None = None,
        network: str = "",
    ) -> list[LatencyPrediction]:
        """Predict the latencies of several lists of kernels: see `predict`."""
        subjects = [self._subject(each, device or self.device, network) for each in networks]
        found = self._model.predict(subjects)
        return [
            LatencyPrediction(
                seconds=math.exp(log),
                low=max(math.exp(log - NINETY * deviation), subject.work.floor),
                high=math.exp(log + NINETY * deviation),
                deviation=deviation,
                whole=bool(network) and self._model.knows(subject),
            )
            for subject, log, deviation in zip(
                subjects, found.logarithm.tolist(), found.deviation.tolist(), strict=True
            )
        ]

    def work(self, kernel: Workload, device: Device | None = None) -> Work:
        """Return the work of one kernel, once, on a device (default: `device`)."""
        device = device or self.device
        binding = dict(kernel.binding)
        key = (kernel.operator.text, json.dumps(binding, sort_keys=True), device)
        if key not in self._works:
            self._works[key] = kernel_work(kernel.operator.canonical, binding, device)
        return self._works[key]

    def _subject(self, kernels: Sequence[Workload], device: Device, network: str) -> LatencySubject:
        total = no_work()
        for kernel in kernels:
            total = total + self.work(kernel, device) * kernel.count
        return LatencySubject(total, device, network)

    # Documents.

    def to_json(self) -> JsonObject:
        """Return the document of its samples; `from_json` fits them again."""
        devices = list(dict.fromkeys([self.device, *(s.device for s in self._samples)]))
        texts = list(dict.fromkeys(k.operator.text for s in self._samples for k in s.kernels))
        places = {text: place for place, text in enumerate(texts)}
        rows: list[Json] = [
            {
                "kernels": [
                    [places[k.operator.text], dict(k.binding), k.count] for k in sample.kernels
                ],
                "seconds": sample.seconds,
                "device": devices.index(sample.device),
                "network": sample.network,
                "family": sample.family,
            }
            for sample in self._samples
        ]
        return {
            "format": FORMAT,
            "version": VERSION,
            "seed": self._seed,
            "devices": [device.to_json() for device in devices],
            "operators": list(texts),
            "samples": rows,
        }

    @classmethod
    def from_json(cls, content: object) -> LatencyPredictor:
        """Read a document of `to_json`.

        Raises:
            UserError: for another format, another version, and damaged content.
        """
        if not isinstance(content, Mapping) or content.get("format") != FORMAT:
            raise UserError(
                "this is no latency predictor\n"
                f'  expected: a document with "format": "{FORMAT}"\n'
                "  what to do: `syno bench latency --predictor FILE` writes one"
            )
        if content.get("version") != VERSION:
            raise UserError(
                "the latency predictor was written by another version of Syno\n"
                f"  expected: version {VERSION}      got: version "
                f"{checks.shown(content.get('version'))}"
            )
        try:
            devices = [Device.from_json(each) for each in content["devices"]]
            operators = [Operator.from_text(text) for text in content["operators"]]
            samples = [_sample(row, operators, devices) for row in content["samples"]]
            found = cls(devices[0], seed=int(content["seed"]))
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
            raise UserError(
                f"the latency predictor is damaged: {type(error).__name__}: {error}"
            ) from None
        return found.fit(samples)

    @checked(path=path)
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document to a file."""
        target = Path(path)
        with checks.from_file("cannot write the latency predictor", target):
            write_text(target, json.dumps(self.to_json()) + "\n", "the latency predictor")

    @classmethod
    @checked(path=path)
    def load(cls, path: str | os.PathLike[str]) -> LatencyPredictor:
        """Read a file that `save` wrote, and fit the model again.

        Raises:
            UserError: as `from_json` does, and where the file cannot be read.
        """
        return cls.from_json(read_json(Path(path), "the latency predictor", _MOST_BYTES))


def _sample(
    row: Mapping[str, object], operators: Sequence[Operator], devices: Sequence[Device]
) -> LatencySample:
    kernels, seconds = row["kernels"], row["seconds"]
    places = [row["device"], *([k[0] for k in kernels] if isinstance(kernels, list) else [None])]
    if not all(checks.is_whole(place, 0) for place in places):
        raise ValueError("a number of an operator or a device")
    assert isinstance(kernels, list) and isinstance(row["device"], int)
    if not isinstance(seconds, (int, float)):
        raise TypeError("a latency is a number")
    return LatencySample(
        kernels=tuple(
            Workload(operators[place], {str(k): int(v) for k, v in binding.items()}, int(count))
            for place, binding, count in kernels
        ),
        seconds=float(seconds),
        device=devices[row["device"]],
        network=str(row["network"]),
        family=str(row["family"]),
    )
