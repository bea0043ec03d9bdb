"""Guided random walks: operators of specifications that are too large to enumerate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypedDict

from syno import _core
from syno._util import checks
from syno._util.arguments import checked, text
from syno._util.threads import check_threads
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.options import WALK_WIDTH, WALKS
from syno.space.rules import Rule, rule_set
from syno.space.space import check_layers

# Called with (walks, operators, coverage).
WalkProgress = Callable[[int, int, float], bool]


class WalkStatistics(TypedDict):
    """The statistics of random walks."""

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
    """The distinct operators that random walks found, in order, and estimates about the space.

    It is a sequence of operators. `weights[i]` estimates how many structures of the whole space
    operator i represents. The sum of the weights of all operators with some property, divided by
    the sum of all weights, estimates the fraction of the space that has the property.
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
        """The specification of the walks."""
        return self._specification

    @property
    def operators(self) -> list[Operator]:
        """The operators, one for each semantic key."""
        return list(self._operators)

    @property
    def weights(self) -> list[float]:
        """For each operator, an estimate of the number of structures that it represents."""
        return list(self._weights)

    @property
    def walks(self) -> int:
        """The total number of particles."""
        return self._core.walks

    @property
    def populations(self) -> int:
        """The number of populations: groups of particles that moved through the space together."""
        return self._core.populations

    @property
    def accepted(self) -> int:
        """How many times a population found an operator."""
        return self._core.accepted

    @property
    def coverage(self) -> float:
        """The fraction of what such walks can find that has been found (Good and Turing)."""
        return self._core.coverage

    @property
    def at_least(self) -> int:
        """A lower bound for the number of operators, estimated from repeats (Chao)."""
        return math.floor(self._core.at_least)

    @property
    def structures(self) -> tuple[float, float]:
        """An estimate of the number of structures up to the depth, and its standard error."""
        return self._core.structures, self._core.structures_error

    @property
    def structures_reach(self) -> float:
        """Half the width of the 95 % confidence interval of the number of structures.

        It assumes normally distributed estimates.
        """
        from scipy.stats import norm

        return float(norm.ppf(0.975)) * self._core.structures_error

    def statistics(self) -> WalkStatistics:
        """Return the statistics as plain values."""
        structures, error = self.structures
        return {
            "walks": self.walks,
            "flocks": self.populations,
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


@checked(bound=text)
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
    """Find operators of a specification by guided random walks.

    The particles of a population move together from step to step. If more graphs can be reached
    than the population has particles, some of the graphs are selected at random; graphs below
    which more operators are expected have a higher probability. The expectations are learned from
    earlier populations.

    Args:
        count: total number of particles.
        seconds: time limit in seconds, with which the result depends on the machine; 0 for none.
        seed: the same arguments give the same operators.
        depth: maximum number of primitives in an operator; 0 uses the `max_depth` of the
            specification.
        width: number of particles in a population.
        max_operators: stop after this number of operators; 0 for no limit.
        threads: number of threads; 0 uses all cores. The result does not depend on it.
        rules_off, rules, bound: as in `Space.enumerate`.
        progress: called regularly with (walks, operators, coverage); the walks stop if it returns
            False.
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
