"""Random walks after an enumeration that a budget ended: what they met that it did not list."""

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

# For walks that only time ends.
_WITHOUT_END = 2**62


@dataclass
class Walked:
    """Walks and which of their operators the listing did not have.

    new: the indices of these; seconds: of the walks; depth: the most primitives of an operator,
    listed_depth: those of the listing.
    """

    walks: Walks
    new: list[int]
    seconds: float
    depth: int
    listed_depth: int

    @property
    def found(self) -> bool:
        """Whether they met an operator."""
        return len(self.walks) > 0

    def in_words(self) -> str:
        """The figures, in words."""
        walks = self.walks
        return (
            f"beyond depth {self.listed_depth}: {walks.walks:,} walks to depth {self.depth} in "
            f"{duration(self.seconds)} met {len(walks):,} operators, {len(self.new):,} of them "
            "not in the listing\n"
            f"coverage {walks.coverage:.3f}: the share of what such walks find that has been "
            "found\n"
            f"at least {walks.at_least:,} operators up to this depth, by how often they repeat; "
            f"about {walks.structures[0]:,.0f} structures, "
            f"± {walks.structures_reach:,.0f} (95 %)"
        )

    def as_json(self) -> dict[str, object]:
        """Figures, and the operators beyond the listing with their weights."""
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

    def draw(self, count: int, seed: int) -> list[Operator]:
        """Some of the operators beyond the listing."""
        order = _core.UniformSamples(len(self.new), seed)
        count = min(count, len(self.new))
        return [self.walks[self.new[order.at(n)]] for n in range(count)]


def walk_beyond(
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
) -> Walked:
    """Walks in the specification of a space.

    count, seconds: how many, and for how long at most (None: no limit); the others are as in
    `syno.walk`; what was met by the end of `progress` counts.
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
    return Walked(
        walks,
        [i for i, operator in enumerate(walks) if operator.key not in known],
        time.monotonic() - started,
        depth,
        space.complete_depth,
    )
