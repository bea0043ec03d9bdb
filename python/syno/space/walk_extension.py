"""Random walks that extend an enumeration which a limit ended early."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from syno import _core
from syno._util.numbers import duration
from syno.operators.operator import Operator
from syno.space.rules import Rule
from syno.space.space import Space
from syno.space.walks import WalkProgress, Walks, walk

# The number of walks if only the time is limited.
_WITHOUT_END = 2**62


@dataclass
class WalkExtension:
    """Random walks, and which of their operators the enumeration did not find.

    Args:
        walks: the walks.
        new: indices of the operators that the enumeration did not find.
        seconds: wall-clock time of the walks.
        depth: maximum number of primitives in an operator of the walks.
        enumerated_depth: the last depth limit that the enumeration completed.
    """

    walks: Walks
    new: list[int]
    seconds: float
    depth: int
    enumerated_depth: int

    @property
    def found(self) -> bool:
        """Whether the walks found an operator."""
        return len(self.walks) > 0

    def in_words(self) -> str:
        """Return the statistics as text."""
        walks = self.walks
        return (
            f"beyond depth {self.enumerated_depth}: {walks.walks:,} walks to depth {self.depth} in "
            f"{duration(self.seconds)} found {len(walks):,} operators, {len(self.new):,} of them "
            "not in the enumeration\n"
            f"coverage {walks.coverage:.3f}: the fraction of what such walks can find that has "
            "been found\n"
            f"at least {walks.at_least:,} operators up to this depth, estimated from repetitions; "
            f"about {walks.structures[0]:,.0f} structures, "
            f"± {walks.structures_reach:,.0f} (95 %)"
        )

    def as_json(self) -> dict[str, object]:
        """Return the statistics, and the new operators with their weights, as plain values."""
        return {
            **self.walks.statistics(),
            "new": len(self.new),
            "depth": self.depth,
            "seconds": round(self.seconds, 3),
            "operators_found": [
                {
                    "key": self.walks[index].key,
                    "weight": self.walks.weights[index],
                    "text": self.walks[index].text,
                }
                for index in self.new
            ],
        }

    def sample(self, count: int, seed: int) -> list[Operator]:
        """Sample at most `count` of the operators that the enumeration did not find."""
        order = _core.UniformSamples(len(self.new), seed)
        count = min(count, len(self.new))
        return [self.walks[self.new[order.at(n)]] for n in range(count)]


def extend_by_walks(
    space: Space,
    count: int | None,
    seconds: float | None,
    *,
    depth: int = 0,
    seed: int = 0,
    threads: int = 0,
    bound: str = "full",
    rules_off: Iterable[str] = (),
    rules: Iterable[Rule] = (),
    progress: WalkProgress | None = None,
) -> WalkExtension:
    """Run random walks in the specification of a space.

    Args:
        count: number of particles; None for no limit.
        seconds: time limit in seconds; None for no limit.

    The other arguments are those of `syno.walk`.
    """
    started = time.monotonic()
    walks = walk(
        space.specification,
        count=count or _WITHOUT_END,
        seconds=seconds or 0.0,
        depth=depth,
        seed=seed,
        threads=threads,
        bound=bound,
        rules_off=rules_off,
        rules=rules,
        progress=progress,
    )
    known = {space.key_of(index) for index in range(len(space))}
    return WalkExtension(
        walks,
        [i for i, operator in enumerate(walks) if operator.key not in known],
        time.monotonic() - started,
        depth,
        space.complete_depth,
    )
