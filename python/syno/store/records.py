"""What the store takes and gives: plain values, no database types.

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

from syno.store.documents import Details, EventData, Recipe, SettingsDocument

OK = "ok"
PAUSED = "paused"  # of a training that goes on later: no answer, it is not stored
ERROR = "error"
TIMEOUT = "timeout"
REJECTED = "rejected"

FLOAT32 = "float32"
INT8 = "int8"

BASELINE = "baseline"
OPERATOR = "operator"

VALIDATION = "holdout"
TEST = "test"

# How an evaluation failed that may have failed by something outside the operator.
CRASH = "crash"
HANG = "hang"
OUT_OF_MEMORY = "out_of_memory"

# So many failures of one operator in a study put it into quarantine.
MOST_FAILURES = 2
# The reason of a trial that is given up: its number of attempts goes in.
GIVEN_UP = "the process ended in each of {} attempts"

ASKED = "asked"
TOLD = "told"


def utc_now() -> str:
    """The present moment as ISO-8601 text with microseconds, in UTC: it sorts as it reads."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plain(value: object) -> Any:
    """`value` with dataclasses as dicts, tuples as lists and non-finite numbers as None.

    JSON has no NaN, and PostgreSQL refuses the one Python writes.
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
    """One text for one content: sorted keys, no spaces."""
    return json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest(text: str) -> str:
    """The first 32 hexadecimal digits of the SHA-256 of `text`: a name for a content."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Environment:
    """Where a result came from; two results with equal environments are comparable.

    device: the processor or accelerator as it names itself; libraries: name -> version;
    commit: of Syno's sources, empty when it runs from an installed package; threads: used for
    training and measuring; rules: version of the rule set.
    """

    device: str
    platform: str
    libraries: dict[str, str]
    commit: str
    threads: int
    rules: str

    @property
    def digest(self) -> str:
        """Names the content."""
        return digest(canonical_json(self))


@dataclass(frozen=True)
class VerificationResult:
    """One comparison of emitted source with the reference interpreter.

    bindings: the bindings the source was emitted and compared under; source_hash names all of
    that source.
    """

    source_hash: str
    bindings: list[dict[str, int]]
    emitter: str
    seed: int
    passed: bool
    max_error: float


@dataclass(frozen=True)
class BaselineLatency:
    """Latency of the original network, taken in the same run as the measurement it belongs to."""

    median_ms: float
    spread_ms: float


@dataclass(frozen=True)
class MeasurementResult:
    """Latency of a whole network with the operator in it; ratio = median / baseline's median."""

    median_ms: float
    spread_ms: float
    ratio: float
    baseline: BaselineLatency
    threads: int
    repeats: int
    batch: int = 1


@dataclass(frozen=True)
class Outcome:
    """The answer to a proposal. Failure is a value: `status` with a `reason`.

    accuracy: share of right answers in [0, 1] on `split`; macs and params: of the layers that
    operators replace, all of them together, for one sample; rung: name of the fidelity, empty when
    it was rejected before training; recipe: everything else that training depends on; details:
    what has no column (losses, slots that kept their layer, ...).
    A measurement needs a passed verification beside it; `latency` is the baseline's own.
    beside: what else the same training gave, such as the network in INT8: stored as evaluations of
    the same proposal, by recipes that differ in `precision`.
    """

    status: str
    reason: str = ""
    accuracy: float | None = None
    split: str = VALIDATION
    rung: str = ""
    recipe: Recipe = field(default_factory=Recipe)
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
    """A study as it stands in the store."""

    id: int
    name: str
    specification: object
    settings: SettingsDocument
    seed: int
    created: str


@dataclass(frozen=True)
class ProposalRecord:
    """A proposal as it stands in the store: the operator is its text.

    ask: 0 for the baseline, then 1, 2, ... in the order in which operators were asked for;
    attempts: how often it was handed out to a process whose end counts against it; status: None
    until it is told, then that of its first evaluation; rung: as in `Outcome`; rung_index: of a
    ladder, that it was sent to last.
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

    @property
    def is_open(self) -> bool:
        """Whether its last evaluation was asked for and is not told."""
        return self.state == ASKED

    @property
    def is_evaluated(self) -> bool:
        """Whether its answer cost an evaluation: all but what was rejected before training."""
        return self.status is not None and (self.status != REJECTED or bool(self.rung))


@dataclass(frozen=True)
class RungResult:
    """One evaluation on the hold-out split at a rung of a ladder (from 0), as `Outcome` says."""

    ask: int
    kind: str
    rung_index: int
    rung: str
    status: str
    accuracy: float | None
    seconds: float

    @property
    def is_evaluated(self) -> bool:
        """Whether it was trained: all but what was rejected before."""
        return self.status != REJECTED or bool(self.rung)


@dataclass(frozen=True)
class QuarantineRecord:
    """An operator that failed in a way that may have come from outside it, and how often.

    kind: `crash`, `hang` or `out_of_memory`, with the reason of the last time; ask: its proposal.
    The baseline has the key `baseline` and no text.
    """

    key: str
    text: str
    ask: int
    failures: int
    kind: str
    reason: str
    updated: str


@dataclass(frozen=True)
class EventRecord:
    """One line of a study's log; `sequence` counts 1, 2, ... within the study."""

    sequence: int
    kind: str
    data: EventData
    created: str
