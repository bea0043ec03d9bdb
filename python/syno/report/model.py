"""The content of a report as plain values.

The renderer reads nothing else: no database session, no operator and no clock. The same values
therefore always give the same page. `gather.py` reads the values from a store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from syno.store.objective import ACCURACY, Objective


class Status(StrEnum):
    """How an evaluation ended, with the names of the store."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    REJECTED = "rejected"


@dataclass(frozen=True)
class LayerGroup:
    """One binding of the specification: the layers of the network that share these sizes.

    `macs` and `original_macs` are those of one layer at batch size 1; the network has
    `multiplicity` such layers. `original_macs` is None if the store does not hold it.
    """

    binding: dict[str, int]
    multiplicity: int
    macs: int | None
    original_macs: int | None = None
    fits: bool = True

    @property
    def label(self) -> str:
        """The binding without the batch size, such as `C_in=16 C_out=32 H=8`."""
        return " ".join(f"{name}={value}" for name, value in self.binding.items() if name != "N")


@dataclass(frozen=True)
class OperatorSource:
    """The generated module for one binding."""

    binding: str
    code: str


@dataclass(frozen=True)
class OperatorRow:
    """A proposed operator and its results.

    Accuracies are fractions and losses are nats per token (text only), both on the validation
    split. Latencies are those of the whole network in milliseconds. `quarantined` operators are not
    evaluated again. `macs` and `params` are those of the replaced layers at batch size 1.
    `finished` is in seconds since the first proposal. With a ladder, the results are those of the
    highest rung with an accuracy, `rung_index` counts from 0, and `scores` are the accuracies from
    the lowest rung to this one.
    """

    number: int
    key: str
    status: Status
    id: str = ""
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
    layers: tuple[LayerGroup, ...] = ()
    sources: tuple[OperatorSource, ...] = ()
    note: str = ""
    quarantined: bool = False
    seconds: float | None = None
    finished: float | None = None
    rung_index: int = 0
    rung: str = ""
    scores: tuple[float, ...] = ()

    @property
    def short(self) -> str:
        """The first eight hexadecimal digits of the id, or of the key if there is none."""
        return (self.id or self.key)[:8]

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
    """The original network, trained and measured in the same way as the operators.

    rival: the fastest engine of others that was at hand, with the network's latency in it; empty
    where none was measured.
    """

    accuracy: float | None = None
    test_accuracy: float | None = None
    loss: float | None = None
    test_loss: float | None = None
    latency_ms: float | None = None
    latency_spread_ms: float | None = None
    rival: str = ""
    rival_ms: float | None = None
    rival_spread_ms: float | None = None
    macs: int | None = None
    params: int | None = None


@dataclass(frozen=True)
class RungRow:
    """A rung of a ladder with the numbers of operators that were trained, failed or promoted."""

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
    """The content of a page.

    `settings` holds groups of names and values by heading. `objective` ranks the operators.
    `rungs` are those of a ladder, the lowest first. `engine` says in words what ran the networks
    whose latency was measured. `volumes` is the hypervolume of several objectives after each result
    (None before the first one that satisfies the constraints); it is empty for one objective.
    """

    title: str
    settings: dict[str, tuple[tuple[str, str], ...]]
    baseline: Baseline
    operators: tuple[OperatorRow, ...]
    rejections: dict[str, int] = field(default_factory=dict)
    final: bool = False
    stop_reason: str = ""
    objective: Objective = ACCURACY
    rungs: tuple[RungRow, ...] = ()
    engine: str = "eager PyTorch"
    volumes: tuple[float | None, ...] = ()

    @property
    def trained(self) -> tuple[OperatorRow, ...]:
        """The operators with a result, the best first; with a ladder those of the highest rung.

        Ties are resolved by fewer MACs, then by the number of the proposal. Results of different
        rungs cannot be compared.
        """
        done = self._done()
        return tuple(c for c in done if c.rung_index == done[0].rung_index)

    @property
    def stopped(self) -> tuple[OperatorRow, ...]:
        """The operators that stopped at lower rungs, from the highest rung, the best first."""
        done = self._done()
        return tuple(c for c in done if c.rung_index < done[0].rung_index)

    def _done(self) -> list[OperatorRow]:
        scores = {c.number: self.score(c) for c in self.operators if c.status is Status.OK}
        known = {number: score for number, score in scores.items() if score is not None}
        done = [c for c in self.operators if c.number in known]
        return sorted(done, key=lambda c: (-c.rung_index, -known[c.number], c.macs or 0, c.number))

    def quality(self, found: OperatorRow | Baseline) -> float | None:
        """Return the value of the objective on the validation split."""
        value: float | None = getattr(found, self.objective.field)
        return value

    def tested(self, found: OperatorRow | Baseline) -> float | None:
        """Return the value of the objective on the test split."""
        value: float | None = getattr(found, f"test_{self.objective.field}")
        return value

    def score(self, found: OperatorRow | Baseline) -> float | None:
        """Return a score of the objective, for which greater is better."""
        value = self.quality(found)
        return None if value is None else self.objective.score(value)

    @property
    def failed(self) -> tuple[OperatorRow, ...]:
        """The operators without a result, in the order of the proposals."""
        return tuple(c for c in self.operators if c.status is not Status.OK)
