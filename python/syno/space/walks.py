"""Guided random walks: operators of specifications that are too large to list."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypedDict

from syno import _core
from syno._util import checks
from syno._util.threads import check_threads
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.options import WALK_WIDTH, WALKS
from syno.space.rules import Rule, rule_set
from syno.space.space import check_layers

# Walkers, operators, coverage.
WalkProgress = Callable[[int, int, float], bool]


class WalkStatistics(TypedDict):
    """All figures of walks."""

    walks: int
    flocks: int
    operators: int
    accepted: int
    met_once: int
    met_twice: int
    coverage: float
    at_least: int
    structures: float
    structures_error: float


class Walks:
    """The distinct operators that walks met, in the order of finding, and what they tell.

    It is a sequence of operators. `weights[i]` estimates how many structures of the whole space
    operator i stands for: a sum of weights over operators with some property, over the sum of all,
    estimates the share of the space that has it.
    """

    def __init__(self, core: _core.Walks, specification: Specification) -> None:
        self._core = core
        self._operators = [
            Operator(found.op, specification, key=found.key) for found in core.operators
        ]
        self._weights = [found.weight for found in core.operators]
        self._specification = specification

    def __len__(self) -> int:
        return len(self._operators)

    def __getitem__(self, index: int) -> Operator:
        return self._operators[index]

    def __iter__(self) -> Iterator[Operator]:
        return iter(self._operators)

    @property
    def specification(self) -> Specification:
        """Where they walked."""
        return self._specification

    @property
    def operators(self) -> list[Operator]:
        """One operator a semantic key."""
        return list(self._operators)

    @property
    def weights(self) -> list[float]:
        """For each operator, an estimate of the structures that it stands for."""
        return list(self._weights)

    @property
    def walks(self) -> int:
        """Walkers in all."""
        return self._core.walks

    @property
    def flocks(self) -> int:
        """Groups of walkers that chose their steps together."""
        return self._core.populations

    @property
    def accepted(self) -> int:
        """How often a flock met an operator."""
        return self._core.accepted

    @property
    def coverage(self) -> float:
        """The share of what such walks find that has been found (Good and Turing)."""
        return self._core.coverage

    @property
    def at_least(self) -> int:
        """A lower bound for the number of operators, estimated from repeats (Chao)."""
        return math.floor(self._core.at_least)

    @property
    def structures(self) -> tuple[float, float]:
        """An estimate of the number of structures up to the depth asked for, its standard error."""
        return self._core.structures, self._core.structures_error

    @property
    def structures_reach(self) -> float:
        """How far the estimate reaches to both sides: 95 of 100 such intervals hold the truth, were
        the estimates normal."""
        from scipy.stats import norm

        return float(norm.ppf(0.975)) * self._core.structures_error

    def statistics(self) -> WalkStatistics:
        """All figures, as plain data."""
        structures, error = self.structures
        return {
            "walks": self.walks,
            "flocks": self.flocks,
            "operators": len(self),
            "accepted": self.accepted,
            "met_once": self._core.singletons,
            "met_twice": self._core.doubletons,
            "coverage": self.coverage,
            "at_least": self.at_least,
            "structures": structures,
            "structures_error": error,
        }

    def __repr__(self) -> str:
        return (
            f"<Walks: {len(self):,} operators from {self.walks:,} walks, "
            f"coverage {self.coverage:.2f}>"
        )


def walk(
    specification: Specification,
    *,
    count: int = WALKS,
    seconds: float = 0.0,
    seed: int = 0,
    depth: int = 0,
    width: int = WALK_WIDTH,
    max_operators: int = 0,
    threads: int = 0,
    rules_off: Iterable[str] = (),
    rules: Iterable[Rule] = (),
    bound: str = "full",
    progress: WalkProgress | None = None,
) -> Walks:
    """Finds operators of a specification by guided random walks.

    Walkers go in flocks from step to step. Where more graphs can be reached than a flock has
    walkers, those are kept by chance below which more operators are expected; what is expected is
    learned from the flocks before.

    count: walkers in all. seconds: 0 for no limit; otherwise the result depends on the machine.
    seed: the same arguments give the same operators.
    depth: primitives in an operator; 0 takes the specification's max_depth.
    width: walkers in a flock. max_operators: ends after so many; 0 for no limit.
    threads: 0 for all cores; the result does not depend on it.
    rules_off, rules, bound: as in Space.listed.
    progress: called now and then with (walks, operators, coverage); False ends the walks.
    """
    check_layers(specification)
    for name, value, least in (
        ("count", count, 1),
        ("seed", seed, 0),
        ("depth", depth, 0),
        ("width", width, 1),
        ("max_operators", max_operators, 0),
    ):
        checks.whole(f"'{name}'", value, least)
    checks.number("'seconds'", seconds)
    check_threads(threads, least=0)
    core = _core.random_walks(
        specification._core,
        rule_set(rules_off, rules),
        count,
        width,
        seconds,
        seed,
        depth,
        max_operators,
        threads,
        bound,
        progress,
    )
    return Walks(core, specification)
