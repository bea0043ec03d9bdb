"""What the report shows, as plain values.

The renderer reads these and nothing else: no database session, no operator and no clock, so that a
page can be written again from the same values and comes out the same. `gather.py` fills them from a
store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from syno.store.objective import ACCURACY, Objective


class Status(StrEnum):
    """How an evaluation ended; the same four words as in the store."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Layer:
    """One binding of the specification: the layers of the network that share these sizes.

    `macs` and `original_macs` are of one layer at batch size 1; the network holds `multiplicity` of
    them. `original_macs` is None when the store does not say what the layer was.
    """

    binding: dict[str, int]
    multiplicity: int
    macs: int | None
    original_macs: int | None = None
    fits: bool = True

    @property
    def label(self) -> str:
        """The binding in one line, without the batch: `C_in=16 C_out=32 H=8`."""
        return " ".join(f"{name}={value}" for name, value in self.binding.items() if name != "N")


@dataclass(frozen=True)
class Source:
    """The generated module for one binding."""

    binding: str
    code: str


@dataclass(frozen=True)
class Candidate:
    """One proposed operator and what became of it.

    Accuracies are fractions on the hold-out split, losses nats a token there (text alone),
    latencies are milliseconds of the whole network, `quarantined` says that the study proposes it
    no more, `macs` and `params` count the replaced layers at batch size 1, `finished` is seconds
    since the first proposal. With a ladder, the figures are those of the highest rung that gave an
    accuracy, `rung_index` from 0, and `scores` are the accuracies from the lowest rung up to it.
    """

    number: int
    key: str
    status: Status
    reason: str = ""
    accuracy: float | None = None
    accuracy_spread: float | None = None
    test_accuracy: float | None = None
    loss: float | None = None
    loss_spread: float | None = None
    test_loss: float | None = None
    latency_ms: float | None = None
    latency_spread_ms: float | None = None
    latency_ratio: float | None = None
    macs: int | None = None
    params: int | None = None
    primitives: dict[str, int] = field(default_factory=dict)
    formula: str = ""
    text: str = ""
    dot: str = ""
    tree: str = ""
    layers: tuple[Layer, ...] = ()
    sources: tuple[Source, ...] = ()
    note: str = ""
    quarantined: bool = False
    seconds: float | None = None
    finished: float | None = None
    rung_index: int = 0
    rung: str = ""
    scores: tuple[float, ...] = ()

    @property
    def short(self) -> str:
        """The first eight hexadecimal digits of the key, as people quote it."""
        return self.key[:8]

    @property
    def formula_line(self) -> str:
        """The first line of the formula, for tables and hover boxes."""
        return self.formula.strip().split("\n", 1)[0]

    @property
    def anchor(self) -> str:
        """The name of this operator's section in the page."""
        return f"operator-{self.number}-{self.short}"


@dataclass(frozen=True)
class Baseline:
    """The original network, trained and measured the same way."""

    accuracy: float | None = None
    test_accuracy: float | None = None
    loss: float | None = None
    test_loss: float | None = None
    latency_ms: float | None = None
    latency_spread_ms: float | None = None
    macs: int | None = None
    params: int | None = None


@dataclass(frozen=True)
class RungRow:
    """One rung of a ladder: how many operators were trained there, and what became of them."""

    name: str
    trained: int
    failed: int
    promoted: int | None
    stopped: int | None
    best: float | None
    baseline: float | None
    seconds: float


@dataclass(frozen=True)
class Report:
    """Everything on one page. `asked` groups label-value pairs under a heading each; by `objective`
    candidates are judged; `rungs` are those of a ladder, the lowest first."""

    title: str
    asked: dict[str, tuple[tuple[str, str], ...]]
    baseline: Baseline
    candidates: tuple[Candidate, ...]
    rejections: dict[str, int] = field(default_factory=dict)
    final: bool = False
    stop_reason: str = ""
    objective: Objective = ACCURACY
    rungs: tuple[RungRow, ...] = ()

    @property
    def trained(self) -> tuple[Candidate, ...]:
        """Candidates with a result, best first; ties go to fewer MACs, then to the number. With a
        ladder those of the highest rung that any reached: only these compare."""
        done = self._done()
        return tuple(c for c in done if c.rung_index == done[0].rung_index)

    @property
    def stopped(self) -> tuple[Candidate, ...]:
        """Candidates that were left at lower rungs, the higher ones and there the best first."""
        done = self._done()
        return tuple(c for c in done if c.rung_index < done[0].rung_index)

    def _done(self) -> list[Candidate]:
        scores = {c.number: self.score(c) for c in self.candidates if c.status is Status.OK}
        known = {number: score for number, score in scores.items() if score is not None}
        done = [c for c in self.candidates if c.number in known]
        return sorted(done, key=lambda c: (-c.rung_index, -known[c.number], c.macs or 0, c.number))

    def quality(self, found: Candidate | Baseline) -> float | None:
        """The objective's value on the hold-out split."""
        value: float | None = getattr(found, self.objective.name)
        return value

    def tested(self, found: Candidate | Baseline) -> float | None:
        """The objective's value on the test split."""
        value: float | None = getattr(found, f"test_{self.objective.name}")
        return value

    def score(self, found: Candidate | Baseline) -> float | None:
        """The quality so that greater is better."""
        value = self.quality(found)
        return None if value is None else self.objective.score(value)

    @property
    def failed(self) -> tuple[Candidate, ...]:
        """Candidates that gave no result, in the order they were asked."""
        return tuple(c for c in self.candidates if c.status is not Status.OK)
