"""How few of the graphs drawn without rules a search with rules keeps: the paper's Table 2."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syno import _core
from syno._util import checks
from syno._util.threads import check_threads
from syno.space.rules import rule_set
from syno_lab.experiments.options import SAMPLE_DEPTH, SAMPLES

if TYPE_CHECKING:
    from syno.operators.specification import Specification

# Table 2 of the paper, by the number of primitives. The last one stands for 8 and more.
PAPER_RATES = {2: 1.0, 3: 0.1818, 4: 0.1397, 5: 0.0440, 6: 0.0122, 7: 0.0008, 8: 0.0}
PAPER_SAMPLES = 6452
PAPER_CANONICAL = 86
_SMALLEST, _LARGEST = 2, 8


@dataclass(frozen=True)
class SizeRow:
    """The samples of one number of primitives.

    canonical: samples that no rule rejects. listed: those of them that pass all conditions of
    quality and cost. structures, operators: how many of the samples are different, by structure and
    by semantic key. paper: the paper's share of canonical samples.
    """

    primitives: int
    label: str
    samples: int
    canonical: int
    listed: int
    structures: int
    operators: int
    paper: float

    @property
    def rate(self) -> float | None:
        """The share of canonical samples; None without samples."""
        return self.canonical / self.samples if self.samples else None

    @property
    def interval(self) -> tuple[float, float]:
        """Where the rate lies with 95 % confidence, by Wilson's score interval."""
        from scipy.stats import binomtest

        if not self.samples:
            return 0.0, 1.0
        found = binomtest(self.canonical, self.samples).proportion_ci(0.95, method="wilson")
        return float(found.low), float(found.high)


@dataclass(frozen=True)
class CanonicalRate:
    """The outcome of `canonical_rate`."""

    rows: list[SizeRow]
    trials: int
    seconds: float
    guide: str
    seed: int
    rules: str
    shapes: str

    @property
    def samples(self) -> int:
        """All samples."""
        return sum(row.samples for row in self.rows)

    @property
    def canonical(self) -> int:
        """All canonical samples."""
        return sum(row.canonical for row in self.rows)

    @property
    def total(self) -> SizeRow:
        """All rows together; samples of different sizes are different structures and operators."""
        listed, structures, operators = (
            sum(getattr(row, name) for row in self.rows)
            for name in ("listed", "structures", "operators")
        )
        counts = (self.samples, self.canonical, listed, structures, operators)
        return SizeRow(0, "all", *counts, PAPER_CANONICAL / PAPER_SAMPLES)

    def as_json(self) -> dict[str, object]:
        """Plain values, the paper's beside them."""
        return {
            "specification": self.shapes,
            "guide": self.guide,
            "seed": self.seed,
            "rules": self.rules,
            "trials": self.trials,
            "seconds": round(self.seconds, 3),
            "samples": self.samples,
            "canonical": self.canonical,
            "paper": {"samples": PAPER_SAMPLES, "canonical": PAPER_CANONICAL},
            "rows": [
                {
                    "primitives": row.primitives,
                    "label": row.label,
                    "samples": row.samples,
                    "canonical": row.canonical,
                    "rate": row.rate,
                    "interval": list(row.interval),
                    "paper": row.paper,
                    "listed": row.listed,
                    "structures": row.structures,
                    "operators": row.operators,
                }
                for row in self.rows
            ],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> CanonicalRate:
        """The inverse of `as_json`; results without `seconds` have 0."""
        names = [field.name for field in dataclasses.fields(SizeRow)]
        return cls(
            rows=[SizeRow(**{name: row[name] for name in names}) for row in content["rows"]],
            trials=content["trials"],
            seconds=content.get("seconds", 0.0),
            guide=content["guide"],
            seed=content["seed"],
            rules=content["rules"],
            shapes=content["specification"],
        )


def canonical_rate(
    specification: Specification,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
    depth: int = SAMPLE_DEPTH,
    guide: str = "distance",
    rules_off: Iterable[str] = (),
    threads: int = 0,
    max_seconds: float = 0.0,
    progress: Callable[[int], bool] | None = None,
) -> CanonicalRate:
    """Draws complete graphs without rules and counts those that the rules let through, by size.

    depth: primitives in a sample. guide: what keeps a walk near the input: distance (the paper's),
    distance-once, bound, or none. rules_off: rules by id or name that do not count.
    """
    for name, value, least in (
        ("samples", samples, 1),
        ("seed", seed, 0),
        ("depth", depth, _SMALLEST),
    ):
        checks.whole(f"'{name}'", value, least)
    checks.number("'max_seconds'", max_seconds)
    check_threads(threads, least=0)
    rules = rule_set(rules_off)
    found = _core.canonical_rates(
        specification._core,
        rules,
        guide,
        samples,
        max_seconds,
        depth,
        seed,
        threads,
        progress,
    )
    return CanonicalRate(
        rows=_rows(found.rows),
        trials=found.trials,
        seconds=found.seconds,
        guide=guide,
        seed=seed,
        rules=rules.version,
        shapes=f"{specification.input} -> {specification.output}",
    )


def _rows(by_size: list[_core.CanonicalRow]) -> list[SizeRow]:
    rows = []
    for size in range(_SMALLEST, _LARGEST + 1):
        last = size == _LARGEST
        counted = by_size[size:] if last else by_size[size : size + 1]
        rows.append(
            SizeRow(
                primitives=size,
                label=f"{size} or more" if last else str(size),
                samples=sum(row.samples for row in counted),
                canonical=sum(row.canonical for row in counted),
                listed=sum(row.listed for row in counted),
                structures=sum(row.structures for row in counted),
                operators=sum(row.operators for row in counted),
                paper=PAPER_RATES[size],
            )
        )
    return rows
