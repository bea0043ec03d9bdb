"""The results of a layer-wise comparison as a file, which an interrupted run goes on with."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno._util.json_types import JsonObject
from syno.engines.engine import RIVALS, missing_rivals
from syno.measure.timing import STREAM_BYTES, Controls, Timing
from syno.runs.files import write_json

FORMAT = "syno layers 1"
ORIGINAL = "original"


@dataclass(frozen=True)
class LayerTime:
    """One subject in one layer and one engine.

    subject: `original`, an operator or a module; engine, precision, own: as in `NetworkTime`.
    best_ms, median_ms, low_ms, high_ms: best time, median and quartiles. error: the largest
    difference from eager PyTorch, relative to the largest output. speedup, over_eager: how many
    times as fast as the original layer is in the fastest engine that is not part of Syno, and in
    eager PyTorch. floor_ms: what the machine needs at least, by its roofline; of engines that
    are not part of Syno, whose kernels may need fewer MACs than the definition, by their bytes
    alone. roofline: the floor as a share of the best time, None for these engines; above 1 where
    rows are computed in pairs, with fewer products.
    """

    subject: str
    engine: str
    precision: str
    own: bool
    best_ms: float
    median_ms: float
    low_ms: float
    high_ms: float
    error: float
    speedup: float
    over_eager: float
    floor_ms: float
    roofline: float | None


@dataclass(frozen=True)
class LayerSubject:
    """What computes in a layer: its MACs for the batch, None where unknown, and its parameters.

    least_macs: the MACs that no code can skip, which are those that are not on zero padding; all of
    them if not stated.
    """

    macs: int | None
    params: int
    least_macs: int | None = None


@dataclass(frozen=True)
class LayerRun:
    """All times of one kind of layer, measured in turns.

    layer: its label, such as `64x56`; name: of the first one in the network; count: how many the
    network has. input, output: shapes. rival: the fastest engine that is not part of Syno, for the
    original. failures: why a subject has no time in an engine, by `subject in engine`.
    control_ms, control_spread: median of a fixed computation in the same rounds, and its
    interquartile range as a share of that; stream_gb_s, stream_spread: of one that reads memory,
    None in files that are older. peak_gflops: measured. environment: device, clocks,
    threads, versions.
    """

    layer: str
    name: str
    count: int
    input: tuple[int, ...]
    output: tuple[int, ...]
    subjects: Mapping[str, LayerSubject]
    times: tuple[LayerTime, ...]
    rival: str
    failures: Mapping[str, str]
    control_ms: float
    control_spread: float
    noisy: bool
    peak_gflops: float
    seconds: float
    environment: Mapping[str, Any]
    stream_gb_s: float | None = None
    stream_spread: float | None = None

    @property
    def controls(self) -> Controls | None:
        """The fixed computations, None in files that are older than the second one."""
        if self.stream_gb_s is None or self.stream_spread is None:
            return None
        stream_ms = STREAM_BYTES / self.stream_gb_s / 1e6
        return Controls(
            Timing(self.control_ms, self.control_spread * self.control_ms),
            Timing(stream_ms, self.stream_spread * stream_ms),
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """Float32 engines of others that the original was not measured in."""
        return missing_rivals(each.engine for each in self.times if each.subject == ORIGINAL)

    def best(self, subject: str, *, own: bool | None = None) -> LayerTime | None:
        """The fastest engine of a subject; of Syno's own (True) or of the others (False)."""
        found = [
            time
            for time in self.times
            if time.subject == subject and (own is None or time.own is own)
        ]
        return min(found, key=lambda time: time.median_ms, default=None)

    def time(self, subject: str, engine: str) -> LayerTime | None:
        """The time of a subject in an engine."""
        for each in self.times:
            if (each.subject, each.engine) == (subject, engine):
                return each
        return None


@dataclass
class LayerResults:
    """All layers that are measured; `settings` say of what."""

    settings: JsonObject
    layers: list[LayerRun] = field(default_factory=list)

    def layer(self, label: str) -> LayerRun | None:
        """The layer of that label, where it is measured."""
        return next((each for each in self.layers if each.layer == label), None)

    def with_layer(self, run: LayerRun, order: Sequence[str]) -> LayerResults:
        """Put the results of a layer into the place that its label has in an order."""
        self.layers = [each for each in self.layers if each.layer != run.layer] + [run]
        self.layers.sort(key=lambda each: order.index(each.layer))
        return self

    def subjects(self) -> list[str]:
        """All subjects, the original first."""
        return list(dict.fromkeys(time.subject for each in self.layers for time in each.times))

    def engines(self) -> list[str]:
        """All engines."""
        return list(dict.fromkeys(time.engine for each in self.layers for time in each.times))

    def mean_speedup(self, subject: str, engine: str | None = None) -> tuple[float, int] | None:
        """The geometric mean of the speed-ups over the kinds of layers, and of how many.

        engine: None for the fastest of each layer.
        """
        found = [
            each.best(subject) if engine is None else each.time(subject, engine)
            for each in self.layers
        ]
        speedups = [time.speedup for time in found if time is not None]
        if not speedups:
            return None
        return math.exp(statistics.fmean(map(math.log, speedups))), len(speedups)

    @property
    def noisy(self) -> bool:
        """Whether other processes used the machine."""
        return any(each.noisy for each in self.layers)

    @property
    def missing(self) -> tuple[str, ...]:
        """Float32 engines of others that the original lacks in a layer."""
        return tuple(name for name in RIVALS if any(name in each.missing for each in self.layers))

    def to_json(self) -> JsonObject:
        """As the file holds it."""
        return {"format": FORMAT, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> LayerResults:
        """The inverse of `to_json`. ValueError, KeyError or TypeError for anything else."""
        if content["format"] != FORMAT:
            raise ValueError(f"its format is '{content['format']}'")
        layers = [
            LayerRun(
                **{
                    **each,
                    "input": tuple(each["input"]),
                    "output": tuple(each["output"]),
                    "subjects": {k: LayerSubject(**v) for k, v in each["subjects"].items()},
                    "times": tuple(LayerTime(**time) for time in each["times"]),
                }
            )
            for each in content["layers"]
        ]
        return cls(dict(content["settings"]), layers)


def read(path: Path) -> LayerResults:
    """What `write` wrote. UserError for another file."""
    try:
        return LayerResults.from_json(parsed_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"the file '{path}' holds no times of layers: {error}\n"
            f"  expected: one that `syno bench layers` wrote ({FORMAT}), or a new file"
        ) from error


def write(found: LayerResults, path: Path) -> None:
    """Replace the file in one step: it is whole at every moment."""
    write_json(path, found.to_json(), "the results", "--out")


def opened(path: Path, settings: JsonObject, machine: Mapping[str, object]) -> LayerResults:
    """The results in a file, or none yet.

    Raises:
        UserError: the file has other settings, or layers of another device or other sources, with
            which new ones cannot be compared.
    """
    if not path.exists():
        return LayerResults(settings)
    found = read(path)
    for name, value in settings.items():
        before = found.settings.get(name)
        if before != value:
            raise UserError(
                f"the results in '{path}' are of another {name}\n"
                f"  expected: {_shown(before)}      got: {_shown(value)}\n"
                "  what to do: take another file, or the options that it was begun with"
            )
    for key, what in (("device", "of another machine"), ("commit", "of other sources")):
        now = str(machine.get(key))
        others = {str(each.environment.get(key)) for each in found.layers} - {now}
        if others:
            raise UserError(
                f"the results in '{path}' are {what}\n"
                f"  expected: {', '.join(sorted(others))}      got: {now}\n"
                "  what to do: take another file, and measure all layers again"
            )
    return found


def _shown(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(map(str, value))
    return str(value)
