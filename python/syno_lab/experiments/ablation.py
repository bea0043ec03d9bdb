"""How often random trials find an operator with and without a distance: the paper's section 9.4."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from syno import _core
from syno._util import checks
from syno._util.threads import check_threads
from syno.space.rules import rule_set
from syno_lab.experiments.options import TRIALS

if TYPE_CHECKING:
    from syno.operators.specification import Specification

# What guides a trial, and in words.
GUIDES = {
    "none": "nothing",
    "distance": "the paper's shape distance, section 7.1",
    "distance-once": "the same, theorem A.2: one contraction removes everything",
    "bound": "our completion bound",
}


@dataclass(frozen=True)
class Guided:
    """Trials under one guide.

    complete: trials that met the sizes of the input. valid: trials that met an operator which
    passes all conditions; None where the paper does not say. distinct: different operators that
    they met, several in a trial perhaps.
    """

    guide: str
    trials: int
    complete: int | None
    valid: int | None
    distinct: int
    seconds: float
    cores: int

    @property
    def trials_per_s(self) -> float:
        """Trials a second, on all cores together."""
        return self.trials / self.seconds if self.seconds else 0.0

    def per_million(self, count: int | None) -> float | None:
        """`count` in a million trials."""
        return None if count is None else 1e6 * count / self.trials if self.trials else 0.0

    def per_core_second(self, count: int | None) -> float | None:
        """`count` in a second of one core."""
        if count is None:
            return None
        return count / (self.seconds * self.cores) if self.seconds else 0.0

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "guide": self.guide,
            "trials": self.trials,
            "complete": self.complete,
            "valid": self.valid,
            "distinct": self.distinct,
            "seconds": round(self.seconds, 3),
            "cores": self.cores,
            "trials_per_s": self.trials_per_s,
            "distinct_per_million_trials": self.per_million(self.distinct),
            "distinct_per_core_second": self.per_core_second(self.distinct),
        }


# Section 9.4: "a server machine with 192 virtual cores".
PAPER = [
    Guided("none", 500_000_000, None, 0, 0, 180.51, 192),
    Guided("distance", 5_000_000, None, None, 253, 68.33, 192),
]


@dataclass(frozen=True)
class Ablation:
    """The outcome of `distance_ablation`."""

    guided: list[Guided]
    seed: int
    rules: str
    shapes: str

    def as_json(self) -> dict[str, object]:
        """Plain values, the paper's beside them."""
        return {
            "specification": self.shapes,
            "seed": self.seed,
            "rules": self.rules,
            "ours": [run.as_json() for run in self.guided],
            "paper": [run.as_json() for run in PAPER],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Ablation:
        """The inverse of `as_json`; results without `seconds` have 0."""
        names = [field.name for field in dataclasses.fields(Guided)]
        runs = [{"seconds": 0.0, **run} for run in content["ours"]]
        guided = [Guided(**{name: run[name] for name in names}) for run in runs]
        return cls(guided, content["seed"], content["rules"], content["specification"])


def distance_ablation(
    specification: Specification,
    *,
    trials: int = TRIALS,
    seed: int = 0,
    depth: int = 0,
    guides: Iterable[str] = tuple(GUIDES),
    rules_off: Iterable[str] = (),
    threads: int = 0,
    max_seconds: float = 0.0,
    progress: Callable[[str, int], bool] | None = None,
) -> Ablation:
    """Runs as many random trials under each guide and counts what they find.

    depth: primitives in an operator; 0 takes the specification's max_depth. max_seconds: for each
    guide; 0 for no limit.
    """
    for name, value, least in (("trials", trials, 1), ("seed", seed, 0), ("depth", depth, 0)):
        checks.whole(f"'{name}'", value, least)
    checks.number("'max_seconds'", max_seconds)
    check_threads(threads, least=0)
    rules = rule_set(rules_off)
    cores = threads or _cores()
    found = []
    for guide in guides:
        run = _core.random_trials(
            specification._core,
            rules,
            guide,
            trials,
            max_seconds,
            depth,
            seed,
            cores,
            _of(guide, progress),
        )
        found.append(
            Guided(guide, run.trials, run.complete, run.valid, run.distinct, run.seconds, cores)
        )
    shapes = f"{specification.input} -> {specification.output}"
    return Ablation(found, seed, rules.version, shapes)


def _of(guide: str, progress: Callable[[str, int], bool] | None) -> Callable[[int], bool] | None:
    return None if progress is None else lambda done: progress(guide, done)


def _cores() -> int:
    import os

    return os.cpu_count() or 1
