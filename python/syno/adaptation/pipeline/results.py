"""What an adaptation found: networks for its goals, their slots, and rivals."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from syno._util import numbers
from syno._util.errors import UserError
from syno._util.tables import Section, Table
from syno.store.objective import Objective
from syno.study.fronts import LATENCY

if TYPE_CHECKING:
    from torch import nn

    from syno._util.inputs import Inputs
    from syno.engines.compare import EngineComparison
    from syno.engines.engine import Outputs
    from syno.inference.quantization.network import QuantizedNetwork

_POINT = 1.0  # percent that the best network may lose if nothing else is said
_ALIKE = 0.1  # percent by which networks differ that are as good as each other
# Training samples that give the ranges of INT8.
CALIBRATION = 256
# A goal is missed by more than this share of it, and missed by far.
_EXACT, _FAR = 0.005, 0.05


@dataclass(frozen=True)
class SlotRow:
    """A slot of an adapted network.

    slot: its name; layer: the original layer in words. operator: the name of the candidate in it;
    formula: what it computes, empty without an operator; text: the operator; source: where it is
    from, `zoo`, `mutation` and so on. before_ms, after_ms:
    latencies of the layer and of the candidate as kernels. macs_before, macs_after: for one sample.
    error: of the fit, relative to the results of the layer.
    """

    slot: str
    layer: str
    operator: str
    formula: str
    text: str
    before_ms: float
    after_ms: float
    macs_before: int
    macs_after: int
    error: float
    source: str = ""


@dataclass(frozen=True)
class WidthRow:
    """A group of channels of a network with fewer of them.

    group: the layer that makes them first; before, after: how many. error: of what the layers that
    read them compute, fitted again, relative to the variance of their results, summed over them.
    """

    group: str
    before: int
    after: int
    error: float


@dataclass(frozen=True)
class BlockRow:
    """A block that is left out: a module by its name, with its layers, MACs and parameters.

    distance: of the outputs of the original network without this block alone from its outputs.
    """

    block: str
    layers: int
    macs: int
    params: int
    distance: float


@dataclass(frozen=True)
class Reached:
    """What a network reached of a goal: shares of what the original needs.

    resource: as in `Goal`.
    """

    resource: str
    wanted: float
    reached: float

    @property
    def missed(self) -> bool:
        """Whether the network needs more than the goal allows, by more than times are exact."""
        return self.reached > (1 + _EXACT) * self.wanted

    @property
    def is_far(self) -> bool:
        """Whether it is missed by so much that the network is no answer to the goal."""
        return self.reached > (1 + _FAR) * self.wanted

    @property
    def text(self) -> str:
        """`0.363x of latency, goal 0.35x missed`."""
        missed = " missed" if self.missed else ""
        return f"{self.reached:.3f}x of {self.resource}, goal {self.wanted:.3g}x{missed}"


@dataclass(frozen=True)
class NetworkRow:
    """A network with its results.

    name: of its goal, `original`, or of a rival; about: what it is; way: how a rival was made,
    without its goal. value: the objective on the
    validation split, the mean over seeds, in the engine of the latency; values: of each seed;
    exact: in float32, if the engine computes in another format; fitted: before the fine-tuning, in
    float32. test: the objective on the test split, as `value`; tests: of each seed. ratio: the
    latency relative to the original network in the same run, and latency_ms that of the original
    times the ratio; engine: where. macs, params: of the whole network. seconds: of its
    fine-tuning; length: of that of one seed, such as `13 epochs`. goals: what it reached of each.
    """

    name: str
    about: str
    value: float | None
    values: tuple[float, ...] = ()
    exact: float | None = None
    fitted: float | None = None
    test: float | None = None
    tests: tuple[float, ...] = ()
    ratio: float | None = None
    latency_ms: float | None = None
    engine: str = ""
    macs: int | None = None
    params: int | None = None
    seconds: float = 0.0
    way: str = ""
    length: str = ""
    goals: tuple[Reached, ...] = ()


@dataclass
class AdaptedNetwork:
    """A network with an operator of its own in each slot, fewer channels and fewer blocks.

    net: fine-tuned, in evaluation mode, in float32. slots: what stands in them; empty where widths
    were chosen alone. quantized: what `syno.quantize` made of it for the engine of the latencies,
    if that has another number format. blocks: those that are left out.
    """

    row: NetworkRow
    slots: tuple[SlotRow, ...]
    net: nn.Module = field(repr=False)
    widths: tuple[WidthRow, ...] = ()
    quantized: QuantizedNetwork | None = field(default=None, repr=False)
    blocks: tuple[BlockRow, ...] = ()

    @property
    def name(self) -> str:
        """The name of the goal, such as `0.5x`."""
        return self.row.name


@dataclass
class AdaptationResults:
    """What an adaptation has found, as `Adaptation` has it.

    study: the name of the study in the store. original: the network as it was. networks: one for
    each goal, in the order of the goals. unreached: goals that no network keeps, by name, and what
    the least possible is. rivals: other ways to make the network faster, if they were wanted, and
    the original in INT8; others: those that can be written, by name. max_drop: percent (points of
    accuracy) that the best network may lose. seconds: by phase; hours: the time that there was, if
    it was limited. candidates: how many the pool had. failures: rivals without a result. settings:
    of the study. environment: the machine and the versions of the process that returned the result.
    original_net: the original itself, in evaluation mode; example: an input [1, ...]; samples:
    batches of the training split, which the ranges of INT8 come from; score: the accuracy of what
    takes such an input, on some samples of the validation split, where outputs are scores of
    classes. engines: what `compare` measured last.
    """

    study: str
    objective: Objective
    original: NetworkRow
    networks: list[AdaptedNetwork]
    unreached: Mapping[str, str] = field(default_factory=dict)
    rivals: list[NetworkRow] = field(default_factory=list)
    others: Mapping[str, AdaptedNetwork] = field(default_factory=dict, repr=False)
    max_drop: float | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    hours: float | None = None
    candidates: int = 0
    failures: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict, repr=False)
    environment: Mapping[str, object] = field(default_factory=dict, repr=False)
    original_net: nn.Module | None = field(default=None, repr=False)
    example: Inputs | None = field(default=None, repr=False)
    samples: Sequence[Inputs] = field(default=(), repr=False)
    score: Callable[[Callable[..., Outputs]], float] | None = field(default=None, repr=False)
    engines: EngineComparison | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """The table of the networks."""
        return str(self.table())

    def network(self, name: str) -> AdaptedNetwork:
        """The network of a goal, or a rival. UserError that lists the names."""
        for each in (*self.networks, *self.others.values()):
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.networks)
        raise UserError(f"the adaptation has no network '{name}'\n  expected: one of {known}")

    @property
    def best(self) -> AdaptedNetwork | None:
        """The fastest network without a mark (`marks`); None without one.

        In place of a network that is no better than a rival, the rival counts.
        """
        kept = [each for each in self.networks if not self.marks(each.row)]
        ahead = (self.ahead_of(each.row) for each in self.networks)
        kept += [
            self.others[row.name]
            for row in ahead
            if row is not None and row.name in self.others and not self.marks(row)
        ]
        return min(kept, key=lambda each: each.row.ratio or 1.0, default=None)

    def ahead_of(self, row: NetworkRow) -> NetworkRow | None:
        """The fastest rival that is at least as fast as an adapted network, and as good to a tenth
        of a percent; None without one."""
        if row.value is None or row.ratio is None or row.ratio >= 1.0:
            return None
        score = self.objective.score
        least = score(self.objective.least(row.value, _ALIKE))
        ahead = [
            (each.ratio, number)
            for number, each in enumerate(self.rivals)
            if each.value is not None and each.ratio is not None
            if each.ratio <= row.ratio and score(each.value) >= least
        ]
        return self.rivals[min(ahead)[1]] if ahead else None

    def marks(self, row: NetworkRow) -> list[str]:
        """What is wrong with an adapted network, in words.

        It loses more than `max_drop` (default: 1) percent, is above its goal by more than 5 %, is
        no faster than the original where the latency was to fall, or no better than a rival.
        """
        found = []
        allowed = _POINT if self.max_drop is None else self.max_drop
        score = self.objective.score
        assert self._base is not None
        if row.value is None or score(row.value) < score(self.objective.least(self._base, allowed)):
            unit = "points" if self.objective.is_share else "percent"
            found.append(f"loses more than {allowed:.1f} {unit}")
        found += [f"misses its goal of {goal.wanted:.3g}x" for goal in row.goals if goal.is_far]
        is_timed = any(goal.resource == LATENCY for goal in row.goals)
        if is_timed and row.ratio is not None and row.ratio >= 1.0:
            found.append("is no faster than the original")
        if row not in self.rivals and (ahead := self.ahead_of(row)) is not None:
            found.append(f"is no better than {ahead.name}")
        return found

    @property
    def _base(self) -> float | None:
        """The objective of the trained network in float32."""
        return self.original.value if self.original.exact is None else self.original.exact

    @property
    def rows(self) -> list[NetworkRow]:
        """The original, the networks, goals that are out of reach, and the rivals."""
        missing = [NetworkRow(name, "out of reach", None) for name in self.unreached]
        return [self.original, *(each.row for each in self.networks), *missing, *self.rivals]

    def table(self) -> Table:
        """All networks with their results, for printing."""
        show = self.objective.shown
        return Table.of(
            self.rows,
            ("network", lambda row: row.name),
            ("what it is~?", lambda row: row.about),
            # `>` at the end is a mark of columns, also behind the name of a lambda.
            (f"{self.objective.name.strip('<>')}>", lambda row: show(row.value)),
            ("spread>", lambda row: self.objective.spread(spread(row.values))),
            ("change>", self._change),
            ("in float32>", lambda row: "" if row.exact is None else show(row.exact)),
            ("after the fit>", lambda row: "" if row.fitted is None else show(row.fitted)),
            ("test>", lambda row: "" if row.test is None else show(row.test)),
            ("spread of test>", lambda row: self.objective.spread(spread(row.tests))),
            (
                "latency>",
                lambda row: "" if row.latency_ms is None else numbers.milliseconds(row.latency_ms),
            ),
            ("speed-up>", lambda row: numbers.speedup(row.ratio) if row.ratio else ""),
            ("trained>?", lambda row: row.length),
            ("MACs>?", lambda row: "" if row.macs is None else numbers.count(row.macs)),
            ("params>?", lambda row: "" if row.params is None else numbers.count(row.params)),
            ("engine?", lambda row: row.engine),
            ("but~", lambda row: "; ".join(self.marks(row)) if row.goals else ""),
        ).without_empty()

    def sections(self) -> list[Section]:
        """What was reached of each goal, and tables of networks, slots and times, for printing."""
        goals = [
            (each.name, "; ".join(goal.text for goal in each.row.goals)) for each in self.networks
        ]
        goals += [(name, f"out of reach: {least}") for name, least in self.unreached.items()]
        found = [Section("Goals", facts=goals)]
        found.append(Section("Networks", f"  {self.study}", table=self.table()))
        for each in self.networks:
            if each.slots:
                found.append(Section(f"Slots of {each.name}", table=slots_table(each.slots)))
            if each.widths:
                found.append(Section(f"Channels of {each.name}", table=widths_table(each.widths)))
            if each.blocks:
                found.append(Section(f"Left out of {each.name}", table=blocks_table(each.blocks)))
        if self.engines is not None:
            from syno.engines.engine import without
            from syno.engines.tables import engines_table

            remark = f"  {self.engines.threads} threads, {self.engines.rounds} rounds"
            if self.engines.missing:
                remark += f"  {without(self.engines.missing)}"
            if self.engines.controls is not None:
                remark += f"  {self.engines.controls.text()}"
            remark += f"  {numbers.NOISY}" if self.engines.noisy else ""
            found.append(Section("Inference engines", remark, table=engines_table(self.engines)))
        total = sum(self.seconds.values())
        parts = [(name, numbers.duration(seconds)) for name, seconds in self.seconds.items()]
        found.append(Section("Time", f"  {numbers.duration(total)}", facts=parts))
        for name, reason in self.failures.items():
            found.append(Section(f"{name}: no result", text=reason))
        return found

    def to_json(self) -> dict[str, object]:
        """Everything but the networks themselves, as plain values."""
        best = self.best
        return {
            "study": self.study,
            "objective": self.objective.name,
            "original": dataclasses.asdict(self.original),
            "networks": [
                dataclasses.asdict(each.row)
                | {"marks": self.marks(each.row)}
                | {"slots": [dataclasses.asdict(s) for s in each.slots]}
                | {"widths": [dataclasses.asdict(w) for w in each.widths]}
                | {"blocks": [dataclasses.asdict(b) for b in each.blocks]}
                for each in self.networks
            ],
            "unreached": dict(self.unreached),
            "best": None if best is None else best.name,
            "rivals": [dataclasses.asdict(row) for row in self.rivals],
            "failures": dict(self.failures),
            "candidates": self.candidates,
            "seconds": dict(self.seconds),
            "hours": self.hours,
            "settings": dict(self.settings),
            "environment": dict(self.environment),
            "engines": None if self.engines is None else self.engines.to_json(),
        }

    def _change(self, row: NetworkRow) -> str:
        if row.value is None or self._base is None or row is self.original:
            return ""
        return self.objective.gap(row.value, self._base)


def slots_table(rows: Sequence[SlotRow]) -> Table:
    """The slots of a network, for printing."""
    return Table.of(
        rows,
        ("slot", lambda row: row.slot),
        ("layer", lambda row: row.layer),
        ("operator", lambda row: row.operator),
        ("before>", lambda row: microseconds(row.before_ms)),
        ("after>", lambda row: microseconds(row.after_ms)),
        ("MACs>", lambda row: numbers.count(row.macs_after)),
        ("share of MACs>", _share),
        ("fit error>", lambda row: f"{row.error:.3f}"),
        ("from~?", lambda row: row.source),
        ("formula~?", lambda row: row.formula),
    )


def widths_table(rows: Sequence[WidthRow]) -> Table:
    """The groups of channels of a network, for printing."""
    return Table.of(
        rows,
        ("channels of", lambda row: row.group),
        ("before>", lambda row: str(row.before)),
        ("after>", lambda row: str(row.after)),
        ("error>", lambda row: f"{row.error:.3f}"),
    )


def blocks_table(rows: Sequence[BlockRow]) -> Table:
    """The blocks that a network lacks, for printing."""
    return Table.of(
        rows,
        ("block", lambda row: row.block),
        ("layers>", lambda row: str(row.layers)),
        ("MACs>", lambda row: numbers.count(row.macs)),
        ("params>", lambda row: numbers.count(row.params)),
        ("distance without it>", lambda row: f"{row.distance:.3f}"),
    )


def microseconds(milliseconds: float) -> str:
    """The time of a kernel in microseconds."""
    return f"{1e3 * milliseconds:,.1f} \N{MICRO SIGN}s"


def _share(row: SlotRow) -> str:
    return f"{row.macs_after / row.macs_before:.2f}x" if row.macs_before else ""


def spread(values: Sequence[float]) -> float | None:
    """The standard deviation over seeds; None for a single one."""
    return statistics.stdev(values) if len(values) > 1 else None
