"""The records of the store: plain values without database types.

Times are ISO-8601 text in UTC, durations are seconds, latencies are milliseconds.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any

from syno.store.documents import Details, EventData, RunRecipe, SettingsDocument

OK = "ok"
PAUSED = "paused"  # a training that is resumed later; it is not stored
ERROR = "error"
TIMEOUT = "timeout"
REJECTED = "rejected"

FLOAT32 = "float32"
INT8 = "int8"

BASELINE = "baseline"
OPERATOR = "operator"

# The method of a study that is an adaptation (`syno adapt`) and no search.
ADAPTATION = "adaptation"

VALIDATION = "holdout"
TEST = "test"

# Kinds of failures that may have an external cause.
CRASH = "crash"
HANG = "hang"
OUT_OF_MEMORY = "out_of_memory"

# An operator with this many failures in a study is put in quarantine.
MOST_FAILURES = 2
# The reason of a trial that is given up, with its number of attempts.
GIVEN_UP = "the process ended in each of {} attempts"

# States of a proposal, as the store names them.
PENDING = "asked"
COMPLETED = "told"


def utc_now() -> str:
    """Return the current time as ISO-8601 text with microseconds, in UTC."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plain(value: object) -> Any:
    """Convert dataclasses to dicts, tuples to lists and non-finite numbers to None.

    JSON has no NaN, and PostgreSQL rejects the one that Python writes.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def canonical_json(value: object) -> str:
    """Write JSON with sorted keys and without spaces, so that equal values have equal texts."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """Return the first 32 hexadecimal digits of the SHA-256 of `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Environment:
    """The machine and software of a result. Results with equal environments are comparable.

    device: the name of the processor or accelerator.
    libraries: their versions by name.
    commit: of the sources of Syno; empty for an installed package.
    threads: of training and measurement.
    rules: the version of the rule set.
    """

    device: str
    platform: str
    libraries: dict[str, str]
    commit: str
    threads: int
    rules: str

    @property
    def digest(self) -> str:
        """A digest of the content."""
        return digest(canonical_json(self))


@dataclass(frozen=True)
class VerificationResult:
    """A comparison of generated code with the reference interpreter.

    bindings: those under which the code was generated and compared.
    source_hash: of all that code.
    """

    source_hash: str
    bindings: list[dict[str, int]]
    emitter: str
    seed: int
    passed: bool
    max_error: float


@dataclass(frozen=True)
class BaselineLatency:
    """The latency of the original network, measured in the same run as that of an operator."""

    median_ms: float
    spread_ms: float


@dataclass(frozen=True)
class MeasurementResult:
    """The latency of a network with an operator; ratio: its median / that of the baseline."""

    median_ms: float
    spread_ms: float
    ratio: float
    baseline: BaselineLatency
    threads: int
    repeats: int
    batch: int = 1


@dataclass(frozen=True)
class Outcome:
    """The result of a proposal. A failure is a result as well, with a `status` and a `reason`.

    accuracy: the fraction of correct predictions on `split`.
    rung: the name of the fidelity; empty if the operator was rejected before training.
    recipe: everything else that the training depends on: see `RunKey`.
    seconds: the wall-clock time of the evaluation.
    macs, params: of all layers that operators replace, for one sample.
    measurement: the latency; it needs a passed `verification`.
    latency: that of the baseline network, if this is its result.
    details: fields without a column (losses, slots that keep their layer, ...).
    beside: further results of the same training, such as that of the network in INT8. They are
        stored as evaluations of the same proposal, with a recipe of another `precision`.
    """

    status: str
    reason: str = ""
    accuracy: float | None = None
    split: str = VALIDATION
    rung: str = ""
    recipe: RunRecipe = field(default_factory=RunRecipe)
    seed: int = 0
    seconds: float = 0.0
    macs: int | None = None
    params: int | None = None
    primitives: dict[str, int] = field(default_factory=dict)
    verification: VerificationResult | None = None
    measurement: MeasurementResult | None = None
    latency: BaselineLatency | None = None
    details: Details = field(default_factory=Details)
    beside: tuple[Outcome, ...] = ()


@dataclass(frozen=True)
class StudyRecord:
    """A study in the store."""

    id: int
    name: str
    specification: object
    settings: SettingsDocument
    seed: int
    created: str


@dataclass(frozen=True)
class ProposalRecord:
    """A proposal in the store.

    ask: its number: 0 for the baseline, then 1, 2, ... in the order of the proposals.
    text: the text of the operator; None for the baseline.
    attempts: how many evaluations started in a process whose end counts as a failed attempt.
    status: that of its first evaluation; None before it.
    rung: as in `Outcome`.
    rung_index: the highest rung that it was promoted to.
    token: of the lease under which it was handed out just now; None where it was only read.
    """

    id: int
    ask: int
    kind: str
    state: str
    text: str | None
    key: str | None
    attempts: int
    status: str | None
    rung: str | None = None
    rung_index: int = 0
    token: int | None = field(default=None, compare=False)

    @property
    def is_open(self) -> bool:
        """Whether it is pending: its last evaluation has no result yet."""
        return self.state == PENDING

    @property
    def is_evaluated(self) -> bool:
        """Whether it was trained, and not rejected before training."""
        return self.status is not None and (self.status != REJECTED or bool(self.rung))


@dataclass(frozen=True)
class RungResult:
    """An evaluation on the validation split at a rung (from 0): see `Outcome`."""

    ask: int
    kind: str
    rung_index: int
    rung: str
    status: str
    accuracy: float | None
    seconds: float

    @property
    def is_evaluated(self) -> bool:
        """Whether the operator was trained, and not rejected before training."""
        return self.status != REJECTED or bool(self.rung)


@dataclass(frozen=True)
class QuarantineRecord:
    """An operator in quarantine.

    key, text: of the operator; the baseline has the key `baseline` and an empty text.
    ask: the number of its proposal.
    failures: their number.
    kind, reason: of the last failure; the kind is `crash`, `hang` or `out_of_memory`.
    updated: the time of the last failure.
    """

    key: str
    text: str
    ask: int
    failures: int
    kind: str
    reason: str
    updated: str


def short_worker(name: str) -> str:
    """Return the machine and the number of the process of a worker, for people."""
    machine, _, rest = name.partition(":")
    return f"{machine[:6]}:{rest.partition(':')[0]}"


@dataclass(frozen=True)
class WorkerRecord:
    """A process that evaluates proposals of drivers.

    tags: what it offers, such as the name of a device.
    environment: its device and software.
    heartbeat: when it was last heard of, by the clock of the store.
    is_alive: whether it has neither left nor been silent for too long.
    ask, study: the number of the proposal that it evaluates, and the study; None between two.
    """

    name: str
    tags: tuple[str, ...]
    environment: Environment
    started: str
    heartbeat: str
    is_alive: bool
    study: str | None = None
    ask: int | None = None

    @property
    def short_name(self) -> str:
        """The machine and the number of the process, for people."""
        return short_worker(self.name)


@dataclass(frozen=True)
class EventRecord:
    """An event in the log of a study; `sequence` counts 1, 2, ... within the study."""

    sequence: int
    kind: str
    data: EventData
    created: str
